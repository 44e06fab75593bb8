"""Read CSV, Parquet, ARFF and database tables, and understand the words people write in them."""

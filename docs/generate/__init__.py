"""The reference pages of the site, made from the sources when the site is built: nothing in them can be out of date."""

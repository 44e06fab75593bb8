"""Studies that informed the choices in lenience. They are not part of the wheel."""

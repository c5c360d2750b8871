"""What every layer may use: errors, dtypes, three-part extents and source positions."""

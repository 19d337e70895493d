"""Ten clients that learn digits, of which two are hostile in turn."""

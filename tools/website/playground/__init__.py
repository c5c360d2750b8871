"""The playground of the documentation: its page's program, its examples, and what builds them."""

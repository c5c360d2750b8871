"""What names and types of C++ mean."""

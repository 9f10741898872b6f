"""What a page is wanted for, and whether its site permits that (spec I10); pure."""

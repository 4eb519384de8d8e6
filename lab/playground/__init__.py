"""The playground: three to eight points placed by hand, and what every loss makes of them."""

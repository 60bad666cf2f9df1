"""Which models a knowledge base uses: choosing, opening, guarding and listing them."""

"""The Train page's parts, in the order in which it draws them."""

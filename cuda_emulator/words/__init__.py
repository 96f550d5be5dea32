"""How numbers, markup and a terminal's tables are written for people: the lens shows its findings with them.

    numbers      numbers as text, with units
    text         text from elsewhere, made safe to show
    markup       HTML that is escaped by construction
    console      rich's console for texts from anywhere, and tables of which no number is cut off

The emulator imports nothing of the project, so `shared` has these files alike; a test compares them.
"""

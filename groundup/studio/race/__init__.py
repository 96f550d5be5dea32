"""The page Race: four stages train the same network at once, and all of them read a drawing.

racing      the lanes, and whose turn it is
routes      the addresses of the page
embedded    what an exported page carries: the speeds of a recorded race (recorded.json), and the network along its way
"""

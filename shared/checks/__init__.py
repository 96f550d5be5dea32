"""Do the floors agree, are the gradients right, and how far apart may two correct answers be?"""

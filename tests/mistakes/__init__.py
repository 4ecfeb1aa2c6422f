"""Mistakes of new users, and the messages that they get.

Every mistake is a function that makes it, with the text of the error or warning, and a grade:

    A   says where, what came and what to do
    B   says what is wrong, but one of these has to be guessed

There is no C, a message of Python or of a library below that says nothing to the user, and no D,
silence. A new mistake is one more function in one of these files.
"""

"""What went wrong for users of looped models or of speculative decoding, each as a test of what must come out.

The scripted model of these cases has 8 tokens; after x comes x + 1 (mod 8), and the shallow answer is the same but for
0 after 3. From prompt `[0]` AR gives 1 2 3 4 5 6 and so on; one draft in a lap is wrong.
"""

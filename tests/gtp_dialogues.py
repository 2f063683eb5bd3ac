"""What a client says and what the engine answers. `>` begins a client's line; `...` stands for anything.

The engine of these dialogues has a network that knows nothing, and thinks for 16 readouts a move.
"""

ON_9x9 = {
    # --- the protocol -------------------------------------------------------------------------------------------------
    "the protocol is version 2": """
        > protocol_version
        = 2
    """,
    "the engine has a name": """
        > name
        = AlphaGo Zero
    """,
    "the version tells the model": """
        > version
        = ... 000000-flat-cod
    """,
    "an id comes back": """
        > 7 name
        =7 AlphaGo Zero
        > 007 protocol_version
        =007 2
    """,
    "an id comes back with an error": """
        > 12 fly me to the moon
        ?12 unknown command
    """,
    "an id alone is no command": """
        > 12
        ?12 unknown command
    """,
    "a number too long to be an id is no command": """
        > 1234567890123456789012345 name
        ? unknown command
    """,
    "a comment gets no answer": """
        > # name
        >
        > name # who is it?
        = AlphaGo Zero
    """,
    "tabs are blanks, and control characters are nothing": """
        > \x01na\x7fme\r
        = AlphaGo Zero
        > play\tblack\td4
        =
    """,
    "commands are case-sensitive": """
        > NAME
        ? unknown command
    """,
    "known commands are known": """
        > known_command genmove
        = true
        > known_command name
        = true
        > known_command make_coffee
        = false
        > known_command
        = false
    """,
    "all commands are listed": """
        > list_commands
        = ...boardsize...clear_board...komi...play...undo...genmove...final_status_list...lz-analyze...
    """,
    "help is the list of commands": """
        > help
        = ...genmove...
    """,
    "quit is answered": """
        > 3 quit
        =3
    """,
    # --- the board ----------------------------------------------------------------------------------------------------
    "the model decides the size": """
        > boardsize 9
        =
        > boardsize 19
        ? unacceptable size: this model plays on 9x9
        > boardsize 0
        ? unacceptable size...
        > query_boardsize
        = 9
    """,
    "a size must be a number": """
        > boardsize nine
        ? syntax error: expected a whole number
        > boardsize
        ? syntax error: expected a whole number
    """,
    "boardsize and clear_board begin a new game": """
        > play b e5
        =
        > boardsize 9
        =
        > play b e5
        =
        > clear_board
        =
        > list_stones black
        =
    """,
    "a stone stands where it was put": """
        > play black c3
        =
        > play w G7
        =
        > list_stones black
        = C3
        > list_stones white
        = G7
    """,
    "the letter I is left out": """
        > play b j9
        =
        > play w i9
        ? invalid coordinate: 'i9' is not a point of a 9x9 board
    """,
    "a vertex must be on the board": """
        > play b k10
        ? invalid coordinate...
        > play b e0
        ? invalid coordinate...
        > play b e
        ? invalid coordinate...
        > play b 55
        ? invalid coordinate...
    """,
    "a move needs colour and vertex": """
        > play
        ? syntax error: expected a colour...
        > play black
        ? syntax error: expected a colour and a vertex
        > play green e5
        ? syntax error: expected a colour...
    """,
    "colours may be written in any case": """
        > play BLACK e5
        =
        > play White E4
        =
        > play B e6
        =
    """,
    "a point holds one stone": """
        > play b e5
        =
        > play w e5
        ? illegal move: E5 is occupied
    """,
    "suicide is illegal": """
        > play w a2
        =
        > play w b1
        =
        > play b a1
        ? illegal move: A1 is suicide
        > play w a1
        =
    """,
    "a surrounded stone is taken": """
        > play b a1
        =
        > play w a2
        =
        > play w b1
        =
        > list_stones black
        =
        > captures white
        = 1
        > captures black
        = 0
    """,
    "a ko may not be taken back at once": """
        > gogui-play_sequence b b1 w c1 b a2 w d2 b b3 w c3 b c2 w b2
        =
        > play b c2
        ? illegal move: C2 is forbidden by superko (it repeats a position)
        > play b j9
        =
        > play w j1
        =
        > play b c2
        =
    """,
    "either colour may play twice": """
        > play b c3
        =
        > play b d4
        =
        > play w e5
        =
        > list_stones b
        = D4 C3
    """,
    "both may pass, and the game may go on": """
        > play b pass
        =
        > play w PASS
        =
        > play b e5
        =
        > genmove w
        = ...
    """,
    "resign is not a vertex": """
        > play b resign
        ? invalid coordinate...
    """,
    "a move can be taken back": """
        > play b e5
        =
        > undo
        =
        > undo
        ? cannot undo
        > list_stones b
        =
    """,
    "a capture can be taken back": """
        > gogui-play_sequence b a1 w a2 b e5 w b1
        =
        > undo
        =
        > list_stones b
        = E5 A1
        > captures w
        = 0
    """,
    "a move of the engine can be taken back": """
        > genmove b
        = ...
        > undo
        =
        > list_stones b
        =
    """,
    "several moves can be taken back": """
        > gogui-play_sequence b e5 w e4 b e3
        =
        > gg-undo 2
        =
        > list_stones b
        = E5
        > gg-undo 2
        ? cannot undo
        > gg-undo -1
        ? cannot undo
        > gg-undo
        =
        > list_stones b
        =
    """,
    "a sequence is played as a whole or not at all": """
        > gogui-play_sequence b e5 w e5
        ? illegal move: E5 is occupied
        > list_stones b
        =
        > gogui-play_sequence b e5 w
        ? syntax error: expected colours and vertices
    """,
    "the board is shown": """
        > play b e5
        =
        > showboard
        =
           A B C D E F G H J
         9 . . . . . . . . . 9
         8 . . . . . . . . . 8
         7 . . . . . . . . . 7
         6 . . . . . . . . . 6
         5 . . . .(X). . . . 5
         4 . . . . . . . . . 4
         3 . . . . . . . . . 3
         2 . . . . . . . . . 2
         1 . . . . . . . . . 1
           A B C D E F G H J
        Move 1. Last move: E5. White (O) to play. Captures: Black 0, White 0.
    """,
    "legal moves can be asked for": """
        > gogui-play_sequence w a2 w b1
        =
        > is_legal b a1
        = 0
        > is_legal w a1
        = 1
        > is_legal b pass
        = 1
        > is_legal b
        ? syntax error: expected a colour and a vertex
    """,
    # --- komi and rules -----------------------------------------------------------------------------------------------
    "komi": """
        > get_komi
        = 7.5
        > komi 0.5
        =
        > get_komi
        = 0.5
        > komi -5
        =
        > get_komi
        = -5
    """,
    "komi must be a number": """
        > komi seven
        ? syntax error: expected a number
        > komi
        ? syntax error: expected a number
        > komi nan
        ? komi must be between -500 and 500
        > komi inf
        ? komi must be between -500 and 500
        > get_komi
        = 7.5
    """,
    "komi may change in the middle of a game": """
        > play b e5
        =
        > genmove w
        = ...
        > komi 0
        =
        > genmove b
        = ...
        > undo
        =
        > undo
        =
        > list_stones b
        = E5
    """,
    "komi outlives a new game": """
        > komi 3.5
        =
        > clear_board
        =
        > get_komi
        = 3.5
    """,
    "KataGo's words for our rules": """
        > kata-get-rules
        = {"hasButton": false, "ko": "POSITIONAL", "scoring": "AREA", "suicide": false, "tax": "NONE", "white...": "0"}
    """,
    "suicide can be allowed": """
        > gogui-play_sequence w a3 w b2 w c1 b a2 b b1 w j9
        =
        > play b a1
        ? illegal move: A1 is suicide
        > kata-set-rules tromp-taylor
        =
        > kata-get-rules
        = ..."suicide": true...
        > play b a1
        =
        > list_stones b
        =
    """,
    "a single rule can be set": """
        > kata-set-rules {"suicide": true}
        =
        > kata-get-rules
        = ..."suicide": true...
        > kata-set-rules {"ko": "POSITIONAL", "suicide": false, "whiteHandicapBonus": "N"}
        =
        > kata-get-rules
        = ..."suicide": false..."whiteHandicapBonus": "N"}
    """,
    "rules that we do not have are refused": """
        > kata-set-rules {"scoring": "TERRITORY"}
        ? rule scoring can only be "AREA" here
        > kata-set-rules {"ko": "SIMPLE", "suicide": true}
        ? rule ko can only be "POSITIONAL" here
        > kata-set-rules {"suicide": 1}
        ? rule suicide can only be false or true here
        > kata-set-rules {"pie": true}
        ? unknown rule pie
        > kata-set-rules japanese
        ? unknown rules: expected tromp-taylor, chinese-ogs, chinese-kgs or what kata-get-rules answers
        > kata-set-rules
        ? unknown rules...
        > kata-set-rules [1, 2
        ? unknown rules...
        > kata-get-rules
        = ..."suicide": false...
    """,
    # --- handicap -----------------------------------------------------------------------------------------------------
    "fixed handicap stones have their places": """
        > fixed_handicap 2
        = C3 G7
        > clear_board
        =
        > fixed_handicap 5
        = C3 G7 C7 G3 E5
        > clear_board
        =
        > fixed_handicap 9
        = C3 G7 C7 G3 C5 G5 E3 E7 E5
    """,
    "a fixed handicap has two to nine stones": """
        > fixed_handicap 1
        ? invalid handicap
        > fixed_handicap 10
        ? invalid handicap
        > fixed_handicap two
        ? syntax error: expected a whole number
    """,
    "handicap stones need an empty board": """
        > play b e5
        =
        > fixed_handicap 2
        ? board not empty
        > set_free_handicap c3 g7
        ? board not empty
        > place_free_handicap 2
        ? board not empty
    """,
    "after the handicap it is White's turn": """
        > fixed_handicap 4
        = C3 G7 C7 G3
        > showboard
        =...White (O) to play...
        > genmove w
        = ...
    """,
    "a free handicap": """
        > set_free_handicap a1 b2 c3
        =
        > list_stones b
        = C3 B2 A1
        > undo
        ? cannot undo
    """,
    "a free handicap must be real": """
        > set_free_handicap a1
        ? bad vertex list: expected two or more different vertices
        > set_free_handicap a1 a1
        ? bad vertex list: expected two or more different vertices
        > set_free_handicap a1 pass
        ? bad vertex list: expected two or more different vertices
        > set_free_handicap a1 z9
        ? bad vertex list: z9
        > list_stones b
        =
    """,
    "the engine places its own handicap": """
        > place_free_handicap 3
        = C3 G7 C7
        > clear_board
        =
        > place_free_handicap 11
        = C3 G7 C7 G3 C5 G5 E3 E7 E5 ... ...
        > clear_board
        =
        > place_free_handicap 1
        ? invalid handicap
        > place_free_handicap 81
        ? invalid handicap
    """,
    # --- moves and time -----------------------------------------------------------------------------------------------
    "the engine moves for either colour": """
        > genmove b
        = ...
        > genmove white
        = ...
        > genmove w
        = ...
        > genmove
        ? syntax error: expected a colour, black or white
    """,
    "reg_genmove does not play": """
        > reg_genmove b
        = ...
        > list_stones b
        =
    """,
    "clocks": """
        > time_settings 300 30 25
        =
        > time_left b 12.5 0
        =
        > time_left w 20 3
        =
        > genmove b
        = ...
    """,
    "time without stones means no limit": """
        > time_settings 0 1 0
        =
        > genmove b
        = ...
    """,
    "a clock without any time": """
        > time_settings 0 0 0
        =
        > genmove b
        = ...
        > time_left w 0 0
        =
        > genmove w
        = ...
    """,
    "clocks must make sense": """
        > time_settings
        ? syntax error: expected main time, period and stones
        > time_settings 1 2
        ? syntax error: expected main time, period and stones
        > time_settings one two three
        ? syntax error...
        > time_settings -1 0 0
        ? syntax error...
        > time_settings nan 0 0
        ? syntax error...
        > time_left b
        ? syntax error...
        > time_left b inf 0
        ? syntax error...
        > time_left b 10 -1
        ? syntax error...
        > genmove b
        = ...
    """,
    "the clocks of KGS": """
        > kgs-time_settings none
        =
        > kgs-time_settings absolute 60
        =
        > kgs-time_settings byoyomi 60 10 5
        =
        > time_left b 10 5
        =
        > genmove b
        = ...
        > kgs-time_settings canadian 60 30 10
        =
        > genmove w
        = ...
        > kgs-time_settings hourglass 60
        ? syntax error: expected none, absolute M, byoyomi M S PERIODS or canadian M S STONES
        > kgs-time_settings
        ? syntax error: expected none, absolute M, byoyomi M S PERIODS or canadian M S STONES
        > kgs-time_settings byoyomi 60 10 0
        =
        > genmove b
        = ...
    """,
    "time left without a clock is a clock": """
        > time_left b 10 0
        =
    """,
    # --- the end ------------------------------------------------------------------------------------------------------
    "the status of stones must be one of three": """
        > final_status_list
        ? syntax error: expected alive, dead or seki
        > final_status_list drunk
        ? syntax error: expected alive, dead or seki
    """,
    "an empty board has no stones of any status": """
        > final_status_list dead
        =
        > final_status_list alive
        =
        > final_status_list seki
        =
    """,
    # --- SGF ----------------------------------------------------------------------------------------------------------
    "a game as SGF": """
        > komi 6.5
        =
        > gogui-play_sequence b e5 w c3 b pass
        =
        > printsgf
        = (;FF[4]...KM[6.5]...SZ[9];B[ee];W[cg];B[])
    """,
    "a game of odd turns as SGF": """
        > gogui-play_sequence w e5 w c3
        =
        > printsgf
        = ...;W[ee];W[cg])
    """,
    "handicap stones as SGF": """
        > fixed_handicap 2
        = C3 G7
        > play w e5
        =
        > printsgf
        = ...AB[...PL[W]...;W[ee])
    """,
    "a file that is not there": """
        > loadsgf no/such/file.sgf
        ? cannot load file: cannot read no/such/file.sgf: No such file or directory
        > loadsgf
        ? syntax error: expected a file name
        > printsgf /dev/null/game.sgf
        ? cannot save file: /dev/null/game.sgf: ...
        > loadsgf /dev
        ? not a file: /dev
        > printsgf /dev
        ? not a file: /dev
    """,
    # --- analysis -----------------------------------------------------------------------------------------------------
    "an analysis ends with the client's next line": """
        > lz-analyze b 10
        =
        info move ... visits ... winrate ... prior ... lcb ... order 0 pv ...
        > 5 name
        =5 AlphaGo Zero
    """,
    "an analysis need not say the colour, nor the interval": """
        > lz-analyze
        =
        info move ...
        > lz-analyze 50
        =
        info move ...
        > lz-analyze interval 50
        =
        info move ...
        > lz-analyze w interval 50
        =
        info move ...
    """,
    "an analysis as KataGo's": """
        > 4 kata-analyze b 10
        =4
        info move ... visits ... utility ... winrate 0... prior 0... lcb 0... utilityLcb ... order 0 pv ...
    """,
    "an analysis with the root and ownership": """
        > kata-analyze b 10 rootInfo true ownership true maxmoves 1
        =
        info move ... order 0 pv ... rootInfo visits ... winrate ... ownership ... ... ...
    """,
    "an analysis of chosen moves": """
        > lz-analyze b 10 allow b e5,e6 1 avoid b e6 1
        =
        info move E5 visits ... order 0 pv E5...
        > lz-analyze b 10 allow w e5 1 maxmoves 1
        =
        info move ...
    """,
    "an analysis without any move": """
        > play b e5
        =
        > lz-analyze w 10 allow w e5 1
        ? no legal move is left to analyse
    """,
    "an analysis must be well asked": """
        > lz-analyze b 10 tea true
        ? syntax error: unknown key tea
        > lz-analyze b 10 minmoves
        ? syntax error: expected [color]...
        > lz-analyze b 10 allow green e5 1
        ? syntax error: expected [color]...
        > lz-analyze b 10 avoid b z9 1
        ? syntax error: expected [color]...
        > kata-analyze b 10 ownership perhaps
        ? syntax error: expected [color]...
    """,
    "a move with its analysis": """
        > 8 lz-genmove_analyze b 5
        =8
        info move ... order 0 pv ...
        play ...
        > showboard
        =...Move 1...
        > kata-genmove_analyze w 5
        =
        info move ... order 0 pv ...
        play ...
        > showboard
        =...Move 2...
    """,
    "a search with its analysis does not play": """
        > kata-search_analyze b 5
        =
        info move ... order 0 pv ...
        play ...
        > showboard
        =...Move 0...
    """,
    "stop and forget": """
        > genmove b
        = ...
        > stop
        =
        > clear_cache
        =
        > genmove w
        = ...
    """,
    # --- GoGui --------------------------------------------------------------------------------------------------------
    "GoGui learns what it can draw": """
        > gogui-analyze_commands
        = cboard/Prior of the network/az-prior
        ...
        > gogui-interrupt
        =
    """,
    "heat maps": """
        > az-prior
        =
        #ff... #ff... #ff... #ff... #ff... #ff... #ff... #ff... #ff...
        ...
        > az-visits
        =
        ...#ff...
        > az-value
        =
        ...0... ...0... ...
        > az-win_rates
        =
        ...
    """,
    "what the search thinks": """
        > az-variation
        = ...
        > az-describe
        = value ...
        ...
    """,
}

ON_5x5 = {
    "a small board has no fixed handicap": """
        > boardsize 5
        =
        > fixed_handicap 2
        ? invalid handicap
        > place_free_handicap 2
        = ... ...
    """,
    "the score of a wall": """
        > gogui-play_sequence b c1 w d1 b c2 w d2 b c3 w d3 b c4 w d4 b c5 w d5
        =
        > gogui-play_sequence b b1 w e1 b b3 w e3 b b5 w e5 b pass w pass
        =
        > final_score
        = W+2.5
        > komi 4.5
        =
        > final_score
        = B+0.5
        > komi 5
        =
        > final_score
        = 0
        > final_status_list dead
        =
        > final_status_list alive
        = ...
    """,
    "a stone in a wall is dead": """
        > gogui-play_sequence b c1 w d1 b c2 w d2 b c3 w d3 b c4 w d4 b c5 w d5
        =
        > gogui-play_sequence b b2 w e1 b b4 w e3 b pass w e5 b pass w a3
        =
        > final_status_list dead
        = A3
    """,
    "White is paid for handicap stones where the rules say so": """
        > set_free_handicap c1 c2 c3 c4 c5 b1 b3 b5
        =
        > gogui-play_sequence w d1 w d2 w d3 w d4 w d5 w e1 w e3 w e5
        =
        > final_score
        = W+2.5
        > kata-set-rules chinese-kgs
        =
        > final_score
        = W+10.5
        > get_komi
        = 7.5
    """,
}

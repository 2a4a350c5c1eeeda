MODULE Server
    PERS num parts := 0;
    VAR socketdev server;
    VAR socketdev client;
    VAR string request;
    VAR jointtarget target := [[0, 0, 0, 0, 30, 0], [9E9, 9E9, 9E9, 9E9, 9E9, 9E9]];

    PROC main()
        SocketCreate server;
        SocketBind server, "192.168.125.1", 5000;
        SocketListen server;
        SocketAccept server, client \Time:=WAIT_MAX;
        WHILE TRUE DO
            SocketReceive client \Str:=request \Time:=WAIT_MAX;
            answer;
        ENDWHILE
    ERROR
        IF ERRNO = ERR_SOCK_CLOSED THEN
            SocketClose client;
            SocketClose server;
            ExitCycle;
        ENDIF
    ENDPROC

    PROC answer()
        ! where: the first joint's angle.  grip: close the gripper.  A number: turn the first joint there.
        VAR jointtarget here;
        IF request = "where" THEN
            here := CJointT();
            SocketSend client \Str:=NumToStr(here.robax.rax_1, 2);
        ELSEIF request = "grip" THEN
            SetDO do_grip, 1;
            WaitDI di_gripped, 1 \MaxTime:=1;
            parts := parts + 1;
            SocketSend client \Str:="gripped";
        ELSEIF StrToVal(request, target.robax.rax_1) THEN
            MoveAbsJ target, v500, fine, tool0;
            SocketSend client \Str:="there";
        ELSE
            SocketSend client \Str:="unknown";
        ENDIF
    ERROR
        RAISE;
    ENDPROC
ENDMODULE

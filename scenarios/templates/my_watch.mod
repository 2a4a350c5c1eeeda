MODULE Watch
    PERS num parts := 0;
    VAR intnum counted;

    PROC main()
        CONNECT counted WITH count;
        IPers parts, counted;
        WaitUntil FALSE;
    ENDPROC

    TRAP count
        TPWrite "parts: " + ValToStr(parts);
    ENDTRAP
ENDMODULE

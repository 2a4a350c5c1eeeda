"""Programs in RAPID for tests."""

from twin.abb.rapid import interpret, parse

HEAD = """MODULE Pick
  PERS tooldata grip:=[TRUE,[[0,0,100],[1,0,0,0]],[1,[0,0,50],[1,0,0,0],0,0,0]];
  PERS tooldata heavy:=[TRUE,[[0,0,200],[1,0,0,0]],[2,[10,0,60],[1,0,0,0],0.01,0.01,0.02]];
  TASK PERS wobjdata table1:=[FALSE,TRUE,"",[[0,0,0],[1,0,0,0]],[[0,0,0],[1,0,0,0]]];
  PERS loaddata part:=[6,[0,0,40],[1,0,0,0],0.01,0.01,0.01];
  CONST jointtarget a:=[[0,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
  CONST jointtarget b:=[[20,10,-10,15,40,-30],[9E9,9E9,9E9,9E9,9E9,9E9]];
  VAR robtarget there;
"""
PICK = (
    HEAD
    + """  PROC main()
    MoveAbsJ a, v1000, fine, grip;
    there := CRobT(\\Tool:=grip \\WObj:=table1);
    pick;
    GripLoad part;
    MoveAbsJ b, v1000, z10, grip;
    MoveAbsJ a, v1000, fine, grip;
  ENDPROC
  PROC pick()
    MoveL Offs(there,0,0,-40), v500, z5, grip\\WObj:=table1;
    MoveL Offs(there,0,40,-40), v500, fine, grip\\WObj:=table1;
    SetDO close, 1;
    WaitTime 0.1;
  ENDPROC
ENDMODULE
"""
)


def module(body, before=""):
    """Return the source of a module with declarations and a `main`, whose lines begin at 4."""
    return parse(f"MODULE M\n{before}\nPROC main()\n{body}\nENDPROC\nENDMODULE", "a.mod")


def program(body, robot=None, before="", **options):
    """Return the program of such a module, as it has run."""
    return interpret(module(body, before), robot, **options)

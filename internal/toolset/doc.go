// Package toolset is the way of every call of the toolsets beside that of pull requests. New makes an operation whose calls pass, in
// this order:
//
//  1. the toolset is enabled,
//  2. tier and effect: a tool that writes needs the operator's leave,
//  3. approval: the argument yes, where the tool asks for it,
//  4. the arguments, with everything that is wrong with them at once,
//  5. dry run, if the server is in one or the call asks for one: the handler is told to do nothing, and no lock is taken,
//  6. the locks of the roots that are written, between processes too,
//  7. the time limit,
//  8. the handler; the client hears at intervals that it still runs,
//  9. redaction of our own tokens,
//  10. the cap of the answer,
//  11. one row in the audit for every write, run and refusal of 1 to 3, before the answer leaves. Other calls that only read leave none.
//
// A failure is a Fault, which has the code of the toolset's contract and the program's own.
package toolset

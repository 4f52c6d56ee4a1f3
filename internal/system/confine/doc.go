// Package confine keeps a process tree, such as that of an agent, out of what belongs to the process that started it.
//
// There are two boundaries. With "user", the tree runs as a separate user, so that the kernel's ordinary permissions
// keep it from our files and processes. With "landlock", it runs as our user under rules of Landlock (landlock(7)): it
// reads and writes only what a Profile names, and cannot signal, trace or inspect processes outside. "none" sets no
// boundary. Decide says which applies on this machine, and why not a better one.
//
// Profile.Wrap turns a command into one that is confined. Between the two stands this program, called again with
// HelperCommand: it gives up what it may do, step by step, checks that it is gone, and becomes the command. Nothing in
// it gives anybody a right: who calls it has the rights already.
package confine

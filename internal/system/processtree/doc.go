// Package processtree runs a command and sees to it that nothing that it starts outlives it: not a process that left
// its process group or session, cleared its environment, lost its parent or ignores signals.
//
// Run runs a command to its end and keeps what it printed. Start is for what is followed while it runs. Cmd is for
// commands that start nothing which could be left.
//
// On Linux a process of its own, the reaper, stands between the caller and the command. It is a child subreaper
// (prctl(2), PR_SET_CHILD_SUBREAPER): whatever loses its parent below it becomes its child, and since it starts nothing
// but the command, everything below it is of the tree. The tree has ended when the kernel says that it has no child
// left. Where the caller may make a control group (cgroups(7), version 2), the tree gets one, too, and ends with it.
// When the caller is killed, its pipe to the reaper closes, and the reaper ends the tree. See docs/adr/0011.
//
// On other systems with process groups, the command's group is ended, and what left it is not found. Elsewhere the
// command alone is ended.
//
// Not of the tree is what another process starts on request: a service manager, a container daemon, at(1).
package processtree

// Package wire defines the messages between the jail and its helper.
//
// They share a stream socket. A message consists of its length, four bytes in big-endian
// order, and a value of this package as JSON; descriptors travel with its first byte. The
// jail sends a [World], and the helper answers [Ready] when it has built the world or failed.
// Then the jail sends a [Command], and the helper answers [Started], and [Ended] when all
// processes of the command have ended. The end of the stream ends everything.
package wire

// MaxMessage limits the bytes of a message; a receiver refuses more.
const MaxMessage = 16 << 20

// Socket is the descriptor of the helper's end.
const Socket = 3

// InnerArg is the first argument of a helper that confines itself and becomes the command.
// Its socket brings a [World], then the [Command].
const InnerArg = "inner"

// World describes the surroundings of a command.
type World struct {
	// Namespaces is set if the helper was started in new namespaces: user, net, ipc, uts and
	// mount. NewRoot adds a pid namespace and a root directory.
	Namespaces, NewRoot bool
	Landlock            bool // paths are restricted with Landlock

	Links  map[string]string // symbolic links of a new root: targets by absolute path
	Binds  []Bind            // outer paths first
	Layers []Layer           // directories that are shown through an overlay; only with NewRoot

	// Home and Tmp are the command's own directories. Masks holds "file" and "dir", which
	// nobody can open, and "empty", a directory. Without NewRoot the helper makes all of them
	// in a new directory in Private; if Private is "", it makes none, and no command can run.
	Home, Tmp, Masks string
	Private          string
	Scratch          int64             // limit of the bytes in the command's own directories, with NewRoot
	Files            map[string]string // initial files of Home: contents by relative path
	HomeLinks        map[string]string // symbolic links in Home: targets by relative path; only without NewRoot
	// UID and GID are the user and the group of the command. They differ from the helper's
	// only if the helper is root.
	UID, GID int
	Network  bool // the command can reach our proxy, and by it hosts
	Limits   Limits
}

// Bind is a directory or file of the host that the command sees under the same path. No part
// of the path may be a symbolic link.
type Bind struct {
	Path     string
	Write    bool // the command may change the content
	Device   bool // the file is a device that the command can use
	Optional bool // the file may be missing on the host
	// Upper and Work receive the command's changes, so that Path stays unchanged. They are
	// directories on one file system, only with NewRoot. "": the command changes Path.
	Upper, Work string
}

// Layer is a directory that the command sees and may change. It is an overlay of the
// directories in Lower, the upper ones first; changes go to Upper, with Work as its work
// directory, both on one file system. If no overlay can be mounted, the command sees and may
// change Alone; if Alone is "", it can only read Path.
type Layer struct {
	Path        string
	Lower       []string
	Upper, Work string
	Alone       string // "": the command can only read Path without an overlay
}

// Limits limits each process, except for Processes and AllFiles.
type Limits struct {
	Memory    uint64 // bytes of data of a process
	Processes uint64 // processes and threads of the whole command
	Files     uint64 // open files of a process
	AllFiles  uint64 // open files of the whole command, which is ended if it has more
	FileSize  uint64 // bytes of a file that a process writes
}

// Ready answers a World: it was built, or Step has failed with Err.
type Ready struct {
	Step, Err string
	Home, Tmp string // paths of the directories that the helper has made; only without NewRoot
	// NoLayers maps the paths of layers that could not be mounted to the errors, in words.
	NoLayers map[string]string
	Found    [][2]uint64 // device and inode of the file at the path of each bind; only with NewRoot
}

// Command is the command to run in a world. Its standard output and error are the descriptors
// of the message.
type Command struct {
	Program string
	Argv    []string
	Env     []string
	Dir     string
	// Masked files exist and cannot be opened, ReadOnly files cannot be changed, and Pinned
	// files cannot be renamed or removed. All are below a bind, and need Namespaces.
	Masked, ReadOnly, Pinned []string
	Emptied                  []string // directories that are empty and unchangeable for the command
}

// PortMark stands for the port of the proxy in the environment of a command.
const PortMark = "\x00port\x00"

// Started answers a Command: it runs, or Step has failed with Err. With Network, a socket
// that listens in the command's network is the descriptor of the message.
type Started struct {
	Step, Err string
}

// Ended is the end of a command. Code is nil if a signal ended it, otherwise Signal is nil.
type Ended struct {
	Code, Signal *int
	CPU          int64 // nanoseconds, user and system
	TooManyFiles bool  // it was ended because it had more open files than Limits.AllFiles
}

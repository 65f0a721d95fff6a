// Package wire is what the jail and its helper say to each other.
//
// They share a stream socket. A message is its length, four bytes in big-endian
// order, and a value of this package as JSON; descriptors travel with its first
// byte. The jail says [World], the helper answers [Ready] when that stands, and
// waits. The jail says [Command], the helper answers [Started], and [Ended] when
// the command and all that it has left behind are gone. The end of the stream ends
// everything.
package wire

// MaxMessage is the longest message, in bytes.
const MaxMessage = 16 << 20

// Socket is the descriptor of the helper's end.
const Socket = 3

// InnerArg is the first argument of a helper that confines itself and becomes the
// command. Its socket brings a [World], then the [Command].
const InnerArg = "inner"

// World is what a command lives in.
type World struct {
	// Namespaces says that the helper was started in namespaces of its own: user,
	// net, ipc, uts and mount. NewRoot adds a pid namespace and a root of its own.
	Namespaces, NewRoot bool
	Landlock            bool

	Links  map[string]string // symbolic links of the root, by their absolute names
	Binds  []Bind            // outer ones first
	Layers []Layer           // with NewRoot

	// Home and Tmp are directories of the command's own. Masks holds "file" and "dir", which
	// nobody can open, and "empty", a directory. Without NewRoot, the helper makes them in a
	// new directory in Private; if Private is empty, none is made, and no command can run.
	Home, Tmp, Masks string
	Private          string
	Scratch          int64 // bytes that the command may write there, with NewRoot
	// Files are what Home begins with: contents by their names below it.
	Files     map[string]string
	HomeLinks map[string]string // symbolic links in Home, without NewRoot
	// UID and GID are who the command is. They differ from the helper's only if
	// that is root.
	UID, GID int
	Network  bool // there is a proxy
	Limits   Limits
}

// Bind is a directory or file of the host that the command sees under the same
// name. No part of it may be a symbolic link.
type Bind struct {
	Path     string
	Write    bool
	Device   bool // a node that works
	Optional bool // it may be missing
	// Upper and Work, directories on one file system, take what the command changes:
	// Path stays as it is. Empty: the command changes what is at Path.
	Upper, Work string
}

// Layer is a directory that the command sees and may change. It is an overlay of Lower,
// directories of the host with the upper ones first; changes go to Upper and Work, directories
// on one file system. If no overlay can be mounted, the command sees and may change Alone; if
// that is empty, it can only read Path.
type Layer struct {
	Path        string
	Lower       []string
	Upper, Work string
	Alone       string // empty: it reads Path
}

// Limits bound each process, but for Processes and AllFiles.
type Limits struct {
	Memory    uint64 // bytes of data
	Processes uint64 // with their threads, of the whole command
	Files     uint64 // open at the same time
	AllFiles  uint64 // open at the same time by the whole command, which is ended when it has more
	FileSize  uint64 // bytes
}

// Ready says that a world stands, or why it does not.
type Ready struct {
	Step, Err string
	Home, Tmp string // without NewRoot
	// NoLayers are the paths of directories that could not be layered, with why.
	NoLayers map[string]string
	// Found are the device and the inode of what was at the path of each bind; with
	// NewRoot.
	Found [][2]uint64
}

// Command is what runs in a world. Its standard output and error are the
// descriptors of the message.
type Command struct {
	Program string
	Argv    []string
	Env     []string
	Dir     string
	// Masked are there and cannot be opened; ReadOnly cannot be changed; Pinned
	// cannot be renamed or removed. All are below a bind.
	Masked, ReadOnly, Pinned []string
	// Emptied are directories that are empty for the command, and cannot be changed.
	Emptied []string
}

// PortMark stands for the port of the proxy in the environment of a command.
const PortMark = "\x00port\x00"

// Started says that a command runs, or why it does not. With a network a socket
// that listens in there is the descriptor of the message.
type Started struct {
	Step, Err string
}

// Ended is how a command ended.
type Ended struct {
	Code, Signal *int
	CPU          int64 // nanoseconds, of the user and the system
	TooManyFiles bool  // it was ended because it had more files open than it may
}

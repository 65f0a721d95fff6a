package jail

import (
	"bytes"
	"slices"

	"github.com/stockade-dev/stockade/host/services"
)

const credentialsNote = "the keys and passwords for that are not in the jail: a person has to run it outside"

const noNetworkNote = "the command needs the network, and has none: a call with network true is asked about, and reaches the hosts that a person allows with --allow-net HOST"

const tooManyFilesNote = "a process in the jail may have 8192 files open, and a command may use half of the user's inotify instances and watches: close some files, or watch fewer"

// remarks maps texts in the output of a failed command (wrote) to notes for the result.
var remarks = []struct{ wrote, note string }{
	{"Value too large for defined data type", `"Value too large" means that a file belongs to another user or group: a command whose changes are kept apart cannot change it, and one with a rule "changes direct" can`},
	{"Too many open files", tooManyFilesNote},
	{"file watchers reached", tooManyFilesNote},
	{"inotify watch limit", tooManyFilesNote},
	{"gpg failed to sign the data", credentialsNote + ", or sign nothing (git -c commit.gpgsign=false)"},
	{"Couldn't load public key", credentialsNote + ", or sign nothing (git -c commit.gpgsign=false)"},
	{"cannot run ssh", credentialsNote},
	{"Could not read from remote repository", credentialsNote},
	{"could not read Username for", credentialsNote},
	{"could not read Password for", credentialsNote},
}

// remark adds to a failed command's result the notes of remarks whose text is in its output.
func remark(ended *services.CommandResult) {
	if ended.Code != nil && *ended.Code == 0 {
		return
	}
	for _, r := range remarks {
		if (bytes.Contains(ended.Stdout, []byte(r.wrote)) || bytes.Contains(ended.Stderr, []byte(r.wrote))) && !slices.Contains(ended.Notes, r.note) {
			ended.Notes = append(ended.Notes, r.note)
		}
	}
}

package jail

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/stockade-dev/stockade/host/jail/wire"
)

// Paths of the system that a command sees, if they exist: programs, libraries and toolchains,
// the settings that programs read, and devices. systemFiles are patterns relative to /etc,
// which is not shown as a whole, because it also holds passwords and keys of the machine.
var (
	systemDirs = []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/run/current-system/sw",
		"/sys/devices/system",
	}
	systemFiles = []string{
		"alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts", "gai.conf", "gitconfig",
		"group", "host.conf", "hostname", "hosts", "inputrc", "java*", "ld-musl-*", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias",
		"locale.conf", "localtime", "magic", "mailcap", "maven", "mime.types", "nsswitch.conf", "os-release", "passwd", "perl",
		"pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "profile", "profile.d", "protocols", "python*", "services", "shells", "ssl/certs",
		"ssl/cert.pem", "ssl/openssl.cnf", "terminfo", "timezone", "vim",
	}
	devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
)

// system returns the binds and links of the system's files for every command. It is computed
// once.
func system() ([]wire.Bind, map[string]string) {
	s := systemOnce()
	return s.binds, s.links
}

type systemPaths struct {
	binds []wire.Bind
	links map[string]string
}

var systemOnce = sync.OnceValue(func() systemPaths {
	s := systemPaths{links: map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"}}
	names := systemDirs
	for _, pattern := range systemFiles {
		found, _ := filepath.Glob("/etc/" + pattern)
		names = append(names, found...)
	}
	for _, name := range names {
		st, err := os.Lstat(name)
		if err != nil {
			continue
		}
		if st.Mode().Type() != os.ModeSymlink {
			s.binds = append(s.binds, wire.Bind{Path: name, Optional: true})
		} else if target, err := os.Readlink(name); err == nil {
			s.links[name] = target
		}
	}
	for _, name := range devices {
		s.binds = append(s.binds, wire.Bind{Path: name, Write: true, Device: true})
	}
	return s
})

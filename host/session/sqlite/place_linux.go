package sqlite

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// networkFileSystems holds the names of file systems on which processes cannot share a write-ahead
// log, by the number from statfs. 9p gives a virtual machine or WSL the files of its host. FUSE is
// missing on purpose: it may be any kind.
var networkFileSystems = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x01021997: "9p",
	0x5346414f: "AFS",
	0x6b414653: "AFS",
	0x73757245: "Coda",
	0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x01161970: "GFS2",
	0x7461636f: "OCFS2",
	0x786f4256: "a VirtualBox shared folder",
	0x7c7c6673: "a Parallels shared folder",
	0xbacbacbc: "a VMware shared folder",
}

// checkFileSystem returns an error if the folder is on a network file system.
func checkFileSystem(folder string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return fmt.Errorf("ask for the file system of %s: %w", folder, err)
	}
	return checkMagic(uint32(stat.Type))
}

// checkMagic returns an error if the number from statfs is that of a network file system.
func checkMagic(magic uint32) error {
	name, found := networkFileSystems[magic]
	if !found {
		return nil
	}
	return fmt.Errorf("it is on a network file system (%s): the write-ahead log needs memory that every process with the file open shares, and machines share none", name)
}

package rootedfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// device is the number of the device of an open directory that was checked; zero: none was.
//
// Some file systems hold no files, but show the kernel and all processes. In /proc a tool
// would find the memory and the environment of the host. So the file system of each handle is
// checked, unless the handle is on the device of the directory in which it was looked up,
// which was checked before. The number of a device stands for the same file system as long as
// something on it is open.
type device uint64

func (d device) holds(fi os.FileInfo) bool { return device(hostSys(fi).Dev) == d }

func (d device) RefuseKernelFile(f *os.File, fi os.FileInfo) error {
	if d.holds(fi) {
		return nil
	}
	return onFd(f, RefuseKernelFd)
}

func (r *kernelRoot) refuseKernelDir(fi os.FileInfo) error {
	if r.holds(fi) {
		return nil
	}
	if err := r.acquire(); err != nil {
		return err
	}
	defer r.release()
	if err := RefuseKernelFd(r.fd); err != nil {
		return err
	}
	r.device = device(hostSys(fi).Dev)
	return nil
}

func (r *osRoot) refuseKernelDir(fi os.FileInfo) error {
	if r.holds(fi) {
		return nil
	}
	if err := onDir(r, RefuseKernelFd); err != nil {
		return err
	}
	r.device = device(hostSys(fi).Dev)
	return nil
}

// RefuseKernelFd is [Root.RefuseKernelFile] for a descriptor: it returns an error if the file
// system is one of the kernel.
func RefuseKernelFd(fd int) error {
	kind, err := fileSystem(fd)
	if err == nil && kernelTypes[kind] {
		return errKernel
	}
	return err
}

// fileSystem returns the type of the file system of a descriptor, as fstatfs reports it.
func fileSystem(fd int) (uint32, error) {
	var st unix.Statfs_t
	_, err := RetryEINTR(func() (int, error) { return 0, unix.Fstatfs(fd, &st) })
	return uint32(st.Type), err
}

// kernelTypes holds the file systems that show the kernel, by their types in fstatfs. Types
// without a constant in package unix come from the source of the kernel.
var kernelTypes = map[uint32]bool{
	unix.PROC_SUPER_MAGIC:      true,
	unix.SYSFS_MAGIC:           true,
	unix.CGROUP_SUPER_MAGIC:    true,
	unix.CGROUP2_SUPER_MAGIC:   true,
	unix.RDTGROUP_SUPER_MAGIC:  true,
	unix.DEBUGFS_MAGIC:         true,
	unix.TRACEFS_MAGIC:         true,
	unix.SECURITYFS_MAGIC:      true,
	unix.SELINUX_MAGIC:         true,
	unix.SMACK_MAGIC:           true,
	unix.AAFS_MAGIC:            true,
	unix.BPF_FS_MAGIC:          true,
	unix.EFIVARFS_MAGIC:        true,
	unix.PSTOREFS_MAGIC:        true,
	unix.BINFMTFS_MAGIC:        true,
	unix.BINDERFS_SUPER_MAGIC:  true,
	unix.NSFS_MAGIC:            true,
	unix.PID_FS_MAGIC:          true,
	unix.DEVPTS_SUPER_MAGIC:    true,
	unix.HUGETLBFS_MAGIC:       true,
	unix.SOCKFS_MAGIC:          true,
	unix.PIPEFS_MAGIC:          true,
	unix.ANON_INODE_FS_MAGIC:   true,
	unix.DMA_BUF_MAGIC:         true,
	unix.SECRETMEM_MAGIC:       true,
	unix.DEVMEM_MAGIC:          true,
	unix.BDEVFS_MAGIC:          true,
	unix.OPENPROM_SUPER_MAGIC:  true,
	unix.USBDEVICE_SUPER_MAGIC: true,
	unix.XENFS_SUPER_MAGIC:     true,
	unix.FUTEXFS_SUPER_MAGIC:   true,
	unix.GUEST_MEMFD_MAGIC:     true,
	0x62656570:                 true, // configfs
	0x67596969:                 true, // rpc_pipefs
	0x6e667364:                 true, // nfsd
	0x19800202:                 true, // mqueue
	0x65735543:                 true, // fusectl
	0x23c9b64e:                 true, // spufs
	0x6f70726f:                 true, // oprofilefs
	0x0a647361:                 true, // functionfs
	0xaee71ee7:                 true, // gadgetfs
}

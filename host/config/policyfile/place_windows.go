package policyfile

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// administrator gets the folder of the file from the system, and not from the environment.
func administrator() Place {
	dir, err := windows.KnownFolderPath(windows.FOLDERID_ProgramData, windows.KF_FLAG_DEFAULT)
	if err != nil {
		dir = `C:\ProgramData`
	}
	return Place{Path: filepath.Join(dir, "Stockade", "policy.toml"), Root: dir, Owner: rootUID}
}

// open opens the file and the directory that holds it, and follows no reparse point. It checks
// their owners and access control lists. Not verified: it was compiled only.
func (p Place) open() (*os.File, error) {
	if p.Root != "" {
		dir := filepath.Dir(p.Path)
		d, err := openPlain(dir, windows.FILE_FLAG_BACKUP_SEMANTICS)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		if err := p.check(d, dir, true); err != nil {
			return nil, err
		}
	}
	f, err := openPlain(p.Path, 0)
	if err != nil {
		return nil, err
	}
	if err := p.check(f, p.Path, false); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func openPlain(name string, flags uint32) (*os.File, error) {
	wide, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	h, err := windows.CreateFile(wide, windows.GENERIC_READ|windows.READ_CONTROL, windows.FILE_SHARE_READ, nil,
		windows.OPEN_EXISTING, windows.FILE_FLAG_OPEN_REPARSE_POINT|flags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: name, Err: err}
	}
	return os.NewFile(uintptr(h), name), nil
}

const mayWrite = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.FILE_WRITE_ATTRIBUTES | windows.FILE_WRITE_EA |
	windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER | windows.GENERIC_WRITE | windows.GENERIC_ALL

func (p Place) check(f *os.File, name string, isDir bool) error {
	h := windows.Handle(f.Fd())
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return &os.PathError{Op: "read", Path: name, Err: err}
	}
	switch {
	case info.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0:
		return refuse(name, "it is a link; it has to be a file at its place")
	case (info.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0) != isDir:
		return refuse(name, "it is not a regular file")
	case p.Owner == Anybody:
		return nil
	case !isDir && p.Root != "" && info.NumberOfLinks != 1:
		return refuse(name, "it has %d names; it has to have one", info.NumberOfLinks)
	}
	sd, err := windows.GetSecurityInfo(h, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return refuse(name, "who may write to it cannot be read: %v", err)
	}
	owner, _, err := sd.Owner()
	if err != nil || !p.trusts(owner) {
		return refuse(name, "it belongs to %v; only an administrator or the system may own it", owner)
	}
	list, _, err := sd.DACL()
	if err != nil || list == nil { // without a list everybody may do everything
		return refuse(name, "it has no access control list")
	}
	for i := range uint32(list.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, i, &ace); err != nil {
			return refuse(name, "its access control list cannot be read: %v", err)
		}
		if ace.Header.AceType == windows.ACCESS_DENIED_ACE_TYPE || ace.Mask&mayWrite == 0 {
			continue
		}
		if sid := (*windows.SID)(unsafe.Pointer(&ace.SidStart)); ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE || !p.trusts(sid) {
			return refuse(name, "%v may write to it; only an administrator and the system may", sid)
		}
	}
	return nil
}

// trusts reports whether an account may own or write the file: administrators, the system
// and its installer, and, for a file of the user's own, the user.
func (p Place) trusts(sid *windows.SID) bool {
	if sid == nil {
		return false
	}
	if sid.IsWellKnown(windows.WinBuiltinAdministratorsSid) || sid.IsWellKnown(windows.WinLocalSystemSid) ||
		sid.String() == "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464" { // TrustedInstaller
		return true
	}
	if p.Owner == rootUID {
		return false
	}
	me, err := windows.GetCurrentProcessToken().GetTokenUser()
	return err == nil && me.User.Sid.Equals(sid)
}

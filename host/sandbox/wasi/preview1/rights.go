package preview1

// rights is a set of permitted operations on a descriptor.
type rights uint64

const (
	rightFDDatasync rights = 1 << iota
	rightFDRead
	rightFDSeek
	rightFDFdstatSetFlags
	rightFDSync
	rightFDTell
	rightFDWrite
	rightFDAdvise
	rightFDAllocate
	rightPathCreateDirectory
	rightPathCreateFile
	rightPathLinkSource
	rightPathLinkTarget
	rightPathOpen
	rightFDReaddir
	rightPathReadlink
	rightPathRenameSource
	rightPathRenameTarget
	rightPathFilestatGet
	rightPathFilestatSetSize
	rightPathFilestatSetTimes
	rightFDFilestatGet
	rightFDFilestatSetSize
	rightFDFilestatSetTimes
	rightPathSymlink
	rightPathRemoveDirectory
	rightPathUnlinkFile
	rightPollFDReadwrite
	rightSockShutdown
	rightSockAccept

	allRights = rightSockAccept<<1 - 1
)

// The rights that apply to each kind of descriptor. Asking for others is no error; they are
// not granted.
const (
	fileRights = rightFDDatasync | rightFDRead | rightFDSeek | rightFDFdstatSetFlags | rightFDSync | rightFDTell |
		rightFDWrite | rightFDAdvise | rightFDAllocate | rightFDFilestatGet | rightFDFilestatSetSize |
		rightFDFilestatSetTimes | rightPollFDReadwrite
	directoryRights = rightFDDatasync | rightFDFdstatSetFlags | rightFDSync | rightFDAdvise |
		rightPathCreateDirectory | rightPathCreateFile | rightPathLinkSource | rightPathLinkTarget | rightPathOpen |
		rightFDReaddir | rightPathReadlink | rightPathRenameSource | rightPathRenameTarget |
		rightPathFilestatGet | rightPathFilestatSetSize | rightPathFilestatSetTimes |
		rightFDFilestatGet | rightFDFilestatSetTimes | rightPathSymlink | rightPathRemoveDirectory |
		rightPathUnlinkFile | rightPollFDReadwrite
	streamRights = rightFDFdstatSetFlags | rightFDFilestatGet | rightPollFDReadwrite
)

package oracle

// The instructions that the code names. Others are written as numbers, next to their
// names. A prefixed instruction is prefix<<16 | number.
const (
	opUnreachable        = 0x00
	opNop                = 0x01
	opBlock              = 0x02
	opLoop               = 0x03
	opIf                 = 0x04
	opElse               = 0x05
	opEnd                = 0x0b
	opBr                 = 0x0c
	opBrIf               = 0x0d
	opBrTable            = 0x0e
	opReturn             = 0x0f
	opCall               = 0x10
	opCallIndirect       = 0x11
	opReturnCall         = 0x12
	opReturnCallIndirect = 0x13
	opDrop               = 0x1a
	opSelect             = 0x1b
	opSelectTyped        = 0x1c
	opLocalGet           = 0x20
	opLocalSet           = 0x21
	opLocalTee           = 0x22
	opGlobalGet          = 0x23
	opGlobalSet          = 0x24
	opTableGet           = 0x25
	opTableSet           = 0x26
	opI32Load            = 0x28
	opI64Store32         = 0x3e // the last load or store
	opMemorySize         = 0x3f
	opMemoryGrow         = 0x40
	opI32Const           = 0x41
	opI64Const           = 0x42
	opF32Const           = 0x43
	opF64Const           = 0x44
	opI32Eqz             = 0x45 // the first of the numeric instructions
	opI32LtS             = 0x48
	opI32GtU             = 0x4b
	opF32Eq              = 0x5b
	opF64Eq              = 0x61
	opI32Sub             = 0x6b
	opI32And             = 0x71
	opI32Or              = 0x72
	opI64Or              = 0x84
	opI64Extend32S       = 0xc4 // the last numeric instruction
	opRefNull            = 0xd0
	opRefIsNull          = 0xd1
	opRefFunc            = 0xd2

	miscPrefix  = 0xfc
	misc        = miscPrefix << 16
	opTruncSat  = misc // the first of eight
	opMemInit   = misc | 8
	opDataDrop  = misc | 9
	opMemCopy   = misc | 10
	opMemFill   = misc | 11
	opTableInit = misc | 12
	opElemDrop  = misc | 13
	opTableCopy = misc | 14
	opTableGrow = misc | 15
	opTableSize = misc | 16
	opTableFill = misc | 17

	vecPrefix   = 0xfd
	vec         = vecPrefix << 16
	opV128Load  = vec
	opV128Store = vec | 11
	opV128Const = vec | 12
	opShuffle   = vec | 13
)

// isFree reports whether executing the instruction is not counted as a step: it only
// structures the code.
func isFree(op uint32) bool {
	switch op {
	case opNop, opBlock, opLoop, opElse, opEnd:
		return true
	}
	return false
}

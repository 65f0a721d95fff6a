;; memory.copy of 64 MiB.
(module
  (memory 2048)
  (func (export "prepare")
    (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x8000000)))
  (func (export "run")
    (loop $again
      (memory.copy (i32.const 0x4000000) (i32.const 0) (i32.const 0x4000000))
      (br $again))))

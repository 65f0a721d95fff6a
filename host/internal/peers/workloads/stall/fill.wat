;; memory.fill of 64 MiB.
(module
  (memory 1024)
  (func $fill (export "prepare")
    (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x4000000)))
  (func (export "run")
    (loop $again
      (call $fill)
      (br $again))))

;; Loads from random places in 48 MiB, each of which depends on the one before.
(module
  (memory 768)
  (func (export "prepare")
    (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x3000000)))
  (func (export "run")
    (local $x i32)
    (loop $again
      ;; The address is x * 48 Mi / 2^32.
      (local.set $x (i32.add
        (i32.mul (local.get $x) (i32.const 1664525))
        (i32.load (i32.wrap_i64 (i64.shr_u
          (i64.mul (i64.extend_i32_u (local.get $x)) (i64.const 0x2fffffc))
          (i64.const 32))))))
      (br $again))))

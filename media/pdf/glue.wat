;; SPDX-License-Identifier: Apache-2.0
;;
;; Reads the characters and counts the pictures of a page in one call each: a call from
;; Go costs a microsecond, one between modules a nanosecond. chars.go decodes the records.
;; scripts/pdfium makes glue.wasm of it.
(module
  (import "pdfium" "memory" (memory 1))
  (import "pdfium" "FPDFText_GetUnicode" (func $unicode (param i32 i32) (result i32)))
  (import "pdfium" "FPDFText_IsGenerated" (func $generated (param i32 i32) (result i32)))
  (import "pdfium" "FPDFText_IsHyphen" (func $hyphen (param i32 i32) (result i32)))
  (import "pdfium" "FPDFText_HasUnicodeMapError" (func $unmapped (param i32 i32) (result i32)))
  (import "pdfium" "FPDFText_GetFontSize" (func $size (param i32 i32) (result f64)))
  (import "pdfium" "FPDFText_GetCharOrigin" (func $origin (param i32 i32 i32 i32) (result i32)))
  (import "pdfium" "FPDFText_GetLooseCharBox" (func $loose (param i32 i32 i32) (result i32)))
  (import "pdfium" "FPDFText_GetMatrix" (func $matrix (param i32 i32 i32) (result i32)))
  (import "pdfium" "FPDFText_GetTextObject" (func $object (param i32 i32) (result i32)))
  (import "pdfium" "FPDFTextObj_GetFont" (func $font (param i32) (result i32)))
  (import "pdfium" "FPDFPage_CountObjects" (func $objects (param i32) (result i32)))
  (import "pdfium" "FPDFPage_GetObject" (func $at (param i32 i32) (result i32)))
  (import "pdfium" "FPDFPageObj_GetType" (func $type (param i32) (result i32)))
  (import "pdfium" "FPDFFormObj_CountObjects" (func $inner (param i32) (result i32)))
  (import "pdfium" "FPDFFormObj_GetObject" (func $innerAt (param i32 i32) (result i32)))

  ;; chars writes the characters from..to of a page of text to out, 80 bytes each:
  ;; i32 code point, i32 flags, f64 size, f64 x, f64 y, f32 left, top, right, bottom,
  ;; f32 a, b, c, d, e, f of the matrix, i32 font, i32 text object.
  (func (export "chars") (param $page i32) (param $from i32) (param $to i32) (param $out i32)
    (local $object i32)
    (block $end
      (loop $next
        (br_if $end (i32.ge_s (local.get $from) (local.get $to)))
        (i32.store (local.get $out) (call $unicode (local.get $page) (local.get $from)))
        (i32.store offset=4 (local.get $out)
          (i32.or
            (i32.or
              (i32.eq (i32.const 1) (call $generated (local.get $page) (local.get $from)))
              (i32.shl (i32.eq (i32.const 1) (call $hyphen (local.get $page) (local.get $from))) (i32.const 1)))
            (i32.shl (i32.eq (i32.const 1) (call $unmapped (local.get $page) (local.get $from))) (i32.const 2))))
        (f64.store offset=8 (local.get $out) (call $size (local.get $page) (local.get $from)))
        (drop (call $origin (local.get $page) (local.get $from)
          (i32.add (local.get $out) (i32.const 16)) (i32.add (local.get $out) (i32.const 24))))
        (drop (call $loose (local.get $page) (local.get $from) (i32.add (local.get $out) (i32.const 32))))
        (drop (call $matrix (local.get $page) (local.get $from) (i32.add (local.get $out) (i32.const 48))))
        (local.set $object (call $object (local.get $page) (local.get $from)))
        (i32.store offset=72 (local.get $out) (i32.const 0))
        (i32.store offset=76 (local.get $out) (local.get $object))
        (if (local.get $object)
          (then (i32.store offset=72 (local.get $out) (call $font (local.get $object)))))
        (local.set $out (i32.add (local.get $out) (i32.const 80)))
        (local.set $from (i32.add (local.get $from) (i32.const 1)))
        (br $next))))

  ;; pictures counts the pictures of a page, those in forms included.
  (func (export "pictures") (param $page i32) (result i32)
    (local $n i32) (local $count i32)
    (local.set $n (call $objects (local.get $page)))
    (block $end
      (loop $next
        (br_if $end (i32.le_s (local.get $n) (i32.const 0)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (local.set $count (i32.add (local.get $count)
          (call $pictures (call $at (local.get $page) (local.get $n)) (i32.const 8))))
        (br $next)))
    (local.get $count))

  ;; pictures of an object: 1 for a picture, those of its objects for a form.
  (func $pictures (param $object i32) (param $depth i32) (result i32)
    (local $type i32) (local $n i32) (local $count i32)
    (local.set $type (call $type (local.get $object)))
    (if (i32.eq (local.get $type) (i32.const 3)) (then (return (i32.const 1))))
    (if (i32.or (i32.ne (local.get $type) (i32.const 5)) (i32.eqz (local.get $depth))) (then (return (i32.const 0))))
    (local.set $n (call $inner (local.get $object)))
    (block $end
      (loop $next
        (br_if $end (i32.le_s (local.get $n) (i32.const 0)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (local.set $count (i32.add (local.get $count)
          (call $pictures (call $innerAt (local.get $object) (local.get $n)) (i32.sub (local.get $depth) (i32.const 1)))))
        (br $next)))
    (local.get $count)))

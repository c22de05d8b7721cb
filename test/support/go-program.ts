/** Returns the parts of a Go binary that contain the list of its modules. */
export function goProgram(go: string, modules: string, before = 5000): Buffer {
  const text = (bytes: Buffer): Buffer => {
    const length: number[] = []
    for (let left = bytes.length; ; left = Math.floor(left / 128)) {
      length.push(left < 128 ? left : (left % 128) + 128)
      if (left < 128) return Buffer.concat([Buffer.from(length), bytes])
    }
  }
  const header = Buffer.alloc(32)
  header.write('\xff Go buildinf:\x08\x02', 'latin1')
  const around = Buffer.alloc(16, 7)
  const info = modules === '' ? Buffer.alloc(0) : Buffer.concat([around, Buffer.from(modules), around])
  const parts = [Buffer.from('\x7fELF', 'latin1'), Buffer.alloc(before, 1), header, text(Buffer.from(go)), text(info)]
  return Buffer.concat([...parts, Buffer.alloc(3000, 2)])
}

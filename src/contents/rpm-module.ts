// Modules of rpm: streams of one package that are updated side by side, each with fixes of its own.

/**
 * Architecture and module in one text, as components store them: a module distinguishes two packages like an architecture does.
 * No architecture has a space.
 */
export const archWithModule = (arch: string, module = ''): string => (module === '' ? arch : `${arch} ${module}`)

export function archAndModule(text: string): { arch: string; module: string } {
  const space = text.indexOf(' ')
  return space < 0 ? { arch: text, module: '' } : { arch: text.slice(0, space), module: text.slice(space + 1) }
}

/** `name-version-release.src.rpm`; undefined for any other text. */
export function sourcePackageOf(file: string): { name: string; version: string } | undefined {
  const [, name, version] = /^(.+)-([^-]+-[^-]+)\.(?:no)?src\.rpm$/.exec(file.slice(0, 512)) ?? []
  return name === undefined || version === undefined ? undefined : { name, version }
}

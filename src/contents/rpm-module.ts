// Modules of rpm. A module has several streams of the same packages, and each stream gets separate fixes.

/**
 * Architecture and module in one text, as component rows store them. Packages of different modules are different, like packages
 * of different architectures. No architecture contains a space.
 */
export const archWithModule = (arch: string, module = ''): string => (module === '' ? arch : `${arch} ${module}`)

export function archAndModule(text: string): { arch: string; module: string } {
  const space = text.indexOf(' ')
  return space < 0 ? { arch: text, module: '' } : { arch: text.slice(0, space), module: text.slice(space + 1) }
}

/** Parses `name-version-release.src.rpm`. Undefined for any other text. */
export function sourcePackageOf(file: string): { name: string; version: string } | undefined {
  const [, name, version] = /^(.+)-([^-]+-[^-]+)\.(?:no)?src\.rpm$/.exec(file.slice(0, 512)) ?? []
  return name === undefined || version === undefined ? undefined : { name, version }
}

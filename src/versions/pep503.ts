/** Normalized name of a Python project. Names that differ only in case, or in runs of dots, dashes and underscores, are equal. */
export function projectName(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, '-')
}

/** Pattern of names of Python projects. */
export const projectNamePattern = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/

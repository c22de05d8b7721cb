/** The one spelling of a Python project's name: runs of dots, dashes and underscores, and the case, do not count. */
export function projectName(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, '-')
}

/** Pattern of names of Python projects. */
export const projectNamePattern = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/

// Names of views, which come before the path of an image.

/** Name of a view, such as `at-20261101t120000.000z_min-7d`. Empty without a time and a minimum age. */
export function viewName(at: string | undefined, age: string, hold: string): string {
  const moment = at === undefined ? '' : `at-${new Date(at).toISOString().toLowerCase().replaceAll(/[-:]/g, '')}`
  const minimum = age === '' ? '' : `min-${age}${hold && `_hold-${hold}`}`
  return [moment, minimum].filter((one) => one !== '').join('_')
}

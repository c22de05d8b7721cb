// The settings of what is known of packages: their vulnerabilities, and how long they live (docs/vulnerabilities.md).
import { annotationNames, setting } from './config-values.ts'

export const vulnerabilitySettings = {
  mainPackageKeys: setting({
    env: 'PINFOLD_MAIN_PACKAGE_KEYS',
    parse: annotationNames,
    default: '',
    doc: 'Further annotations and labels that name the package which an image is about, with commas; see [lifecycles](lifecycles.md).',
  }),
}

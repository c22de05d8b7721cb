// The settings of what is known of packages: their vulnerabilities, and how long they live (docs/vulnerabilities.md).
import { annotationNames, ConfigError, setting } from './config-values.ts'

const sourceNames = (value: string, name: string): readonly string[] => {
  const listed = value.split(',').flatMap((one) => (one.trim() === '' ? [] : [one.trim()]))
  if (listed.every((one) => /^(?:osv\/[A-Za-z][\w .:()-]{0,63}|secdb\/[a-z0-9.]+\/[a-z]+|debian-tracker)$/.test(one)))
    return listed
  throw new ConfigError(`${name} must be osv/ECOSYSTEM, secdb/BRANCH/REPOSITORY or debian-tracker, with commas`)
}
const mirrorUrl = (value: string, name: string): string => {
  const url = URL.parse(value)
  if (value === '' || (url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''))
    return value
  throw new ConfigError(`${name} must be an http or https URL without a user and password`)
}

export const vulnerabilitySettings = {
  vulnerabilitySources: setting({
    env: 'PINFOLD_VULNERABILITY_SOURCES',
    parse: sourceNames,
    default: 'osv/PyPI,osv/npm,osv/Go,osv/Maven,osv/RubyGems,osv/crates.io,osv/Alpine,osv/Debian',
    doc: 'What `pinfold vulnerabilities sync` reads, with commas; see [vulnerabilities](vulnerabilities.md).',
  }),
  vulnerabilityMirror: setting({
    env: 'PINFOLD_VULNERABILITY_MIRROR',
    parse: mirrorUrl,
    default: '',
    doc: 'Where copies of the sources are, with `osv/`, `secdb/` and `debian-tracker` below. Default: at their own addresses.',
  }),
  mainPackageKeys: setting({
    env: 'PINFOLD_MAIN_PACKAGE_KEYS',
    parse: annotationNames,
    default: '',
    doc: 'Further annotations and labels that name the package which an image is about, with commas; see [lifecycles](lifecycles.md).',
  }),
}

import { projectName } from '#versions/pep503.ts'
import {
  type Distribution,
  distributionKinds,
  isOfDistribution,
  type Package,
  type PackageKind,
  packageKinds,
} from './packages.ts'
import { archAndModule, sourcePackageOf } from './rpm-module.ts'

type Parsed = { kind: PackageKind; namespace: string[]; name: string; version: string; qualifiers: URLSearchParams }

/** The package that a package URL names, when it is of a kind that we compare and has a version. */
export function packageOf(url: string): Package | undefined {
  const parsed = parse(url)
  if (!parsed) return undefined
  const { kind, qualifiers } = parsed
  const name = nameIn(parsed)
  const version = withEpoch(kind, parsed.version, qualifiers.get('epoch') ?? '')
  if (name === '' || version === '') return undefined
  if (!isOfDistribution({ kind })) return { kind, name, version, origin: name, originVersion: version, arch: '' }
  const [module, stream] = (kind === 'rpm' ? (qualifiers.get('rpmmod') ?? '') : '').split(':')
  return {
    ...{ kind, name, version, ...originIn(qualifiers, name, version), arch: qualifiers.get('arch') ?? '' },
    ...(module && stream ? { module: `${module}:${stream}` } : {}),
  }
}

/** The distribution that a package URL says its package to be of, such as Alpine's in `pkg:apk/alpine/musl@1?distro=alpine-3.19`. */
export function distributionOf(url: string): Distribution | undefined {
  const { kind, namespace = [], qualifiers } = parse(url) ?? {}
  const [id] = namespace
  if (!kind || !isOfDistribution({ kind }) || !id || namespace.length > 1) return undefined
  const distro = qualifiers?.get('distro') ?? ''
  const [, named, release] = kind === 'rpm' ? (/^([a-z_-]{1,40})-(\d[\w.-]{0,40})$/.exec(distro) ?? []) : []
  if (named !== undefined && release !== undefined) return { id: named, version: release }
  const version = distro.startsWith(`${id}-`) ? distro.slice(id.length + 1) : /^\d/.test(distro) ? distro : ''
  return { id: id.slice(0, 128).toWellFormed(), version: version.slice(0, 128).toWellFormed() }
}

function parse(url: string): Parsed | undefined {
  const [, type = '', path = '', query = ''] = /^pkg:\/*([A-Za-z0-9.+-]+)\/([^?#]*)(?:\?([^#]*))?/.exec(url) ?? []
  const kind = packageKinds.find((known) => known === type.toLowerCase())
  const at = path.lastIndexOf('@')
  if (!kind || at < 1) return undefined
  const parts = path.slice(0, at).split('/').map(decoded)
  const qualifiers = new URLSearchParams(query.replaceAll('+', '%2B'))
  const version = decoded(path.slice(at + 1))
  return { kind, namespace: parts.slice(0, -1).filter(Boolean), name: parts.at(-1)!, version, qualifiers }
}

/** As the advisories of the ecosystem write it. */
function nameIn({ kind, namespace, name }: Parsed): string {
  if (name === '') return ''
  if (kind === 'golang' || kind === 'npm') return [...namespace, name].join('/')
  if (kind === 'maven') return [...namespace, name].join(':')
  return kind === 'pypi' ? projectName(name) : name
}

/** The package URL of a package, in a distribution where that is known. */
export function packageUrl(
  { kind, name, version, arch }: Omit<Package, 'origin' | 'originVersion'>,
  distribution: string,
) {
  const ofDistribution = distributionKinds.some((one) => one === kind)
  const parts = ofDistribution ? (distribution === '' ? [name] : [distribution, name]) : partsOf(kind, name)
  const path = [kind, ...parts].map(encodeURIComponent).join('/')
  const { arch: architecture, module } = archAndModule(arch)
  const [, epoch = '', rest = version] = kind === 'rpm' ? (/^(\d+):(.*)$/.exec(version) ?? []) : []
  const qualifiers = { arch: architecture, epoch, rpmmod: module }
  const query = Object.entries(qualifiers).flatMap(([key, value]) =>
    value === '' ? [] : [`${key}=${encodeURIComponent(value)}`],
  )
  return `pkg:${path}@${encodeURIComponent(rest)}${query.length === 0 ? '' : `?${query.join('&')}`}`
}

function partsOf(kind: PackageKind, name: string): string[] {
  if (kind === 'maven') return name.split(':')
  return kind === 'golang' || kind === 'npm' ? name.split('/') : [name]
}

/** `upstream` is the origin's name, followed by its version where that differs; apk builders say `origin`. */
function originIn(qualifiers: URLSearchParams, name: string, version: string) {
  const source = sourcePackageOf(qualifiers.get('upstream') ?? qualifiers.get('sourcerpm') ?? '')
  if (source) return { origin: source.name, originVersion: sameEpoch(version, source.version) }
  const [origin = '', originVersion = ''] = (qualifiers.get('upstream') ?? qualifiers.get('origin') ?? '').split('@')
  return { origin: origin || name, originVersion: originVersion || version }
}

/** Source packages of rpm are named without their epoch. */
function sameEpoch(version: string, source: string): string {
  const [epoch = ''] = /^\d+:/.exec(version) ?? []
  return `${epoch}${source}`
}

function withEpoch(kind: PackageKind, version: string, epoch: string): string {
  return (kind === 'deb' || kind === 'rpm') && /^[1-9][0-9]*$/.test(epoch) && !version.includes(':')
    ? `${epoch}:${version}`
    : version
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

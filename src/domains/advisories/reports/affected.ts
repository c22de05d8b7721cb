// Determines if a package is vulnerable according to an advisory. See docs/reference/resolved-vulnerabilities.md.
import { schemeOfKind } from '#contents/ecosystems.ts'
import { isOfDistribution, type Package } from '#contents/packages.ts'
import { compareInstalled } from '#versions/order.ts'
import { isModular } from '#versions/rpm.ts'
import type { Advisory, AdvisoryEvent } from '../advisories/publication.service.ts'

/** Artifact names that an advisory on the package can use: the package's name, and the name of its source package. */
export function namesOf(found: Package): string[] {
  return found.name === found.origin ? [found.name] : [found.name, found.origin]
}

/** True if the package is affected. `advisory` must have its approved events only, sorted by time. */
export function affects(advisory: Advisory, found: Package): boolean {
  const { artifactName, artifactType, artifactArchitecture } = advisory
  if (artifactType !== found.kind || !isOfDistribution(found)) return false
  if (artifactArchitecture !== '' && artifactArchitecture !== found.arch) return false
  if (artifactName === found.origin) return isVulnerable(advisory, found, found.originVersion)
  return artifactName === found.name && isVulnerable(advisory, found, found.version)
}

/** The last determination is used. A detection, or a decision not to analyze, is not a determination. */
function isVulnerable({ events }: Advisory, { kind, module = '' }: Package, version: string): boolean {
  const last = events.findLast(isDetermination)
  if (!last || last.type === 'falsePositiveDetermination') return false
  const { fixedVersion, patchedVersions } = last.data
  if (last.type === 'patched') return !(Array.isArray(patchedVersions) && patchedVersions.includes(version))
  if (last.type !== 'fixed') return true
  // A fix in an rpm module does not apply to packages outside of modules, and vice versa.
  if (kind === 'rpm' && (module !== '' || isModular(version)) !== isModular(String(fixedVersion))) return false
  const order = compareInstalled(schemeOfKind(kind), version, String(fixedVersion))
  return order !== undefined && order < 0
}

function isDetermination({ type }: AdvisoryEvent): boolean {
  return type !== 'detection' && type !== 'analysisNotPlanned' && type !== 'componentLocationChanged'
}

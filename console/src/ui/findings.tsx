// Counts of findings by severity, and the badge of an image that was not scanned completely.
import { words } from '../words.ts'
import { Icon } from './icon.tsx'

export type Counts = { critical: number; high: number; medium: number; low: number; unknown: number }
const severities = ['critical', 'high', 'medium', 'low'] as const
/** Short labels below the cells, where a page shows only one image. */
const labels = { critical: 'crit', high: 'high', medium: 'med', low: 'low' }

type StripProps = { counts: Counts; href?: string }

/** Four cells at fixed places, so that a column can be compared. Zero is gray. Findings of unknown severity follow. */
export function FindingsStrip({ counts, href }: StripProps) {
  const cells = (
    <>
      <span class="unseen">{words.findingCounts(counts)}</span>
      {severities.map((one) => (
        <i key={one} class={counts[one] > 0 ? one : ''} aria-hidden="true" data-label={labels[one]}>
          {counts[one]}
        </i>
      ))}
      {counts.unknown > 0 && (
        <i class="unknown" aria-hidden="true">
          {words.unknownFindings(counts.unknown)}
        </i>
      )}
    </>
  )
  return href === undefined ? (
    <span class="strip">{cells}</span>
  ) : (
    <a class="strip" href={href}>
      {cells}
    </a>
  )
}

/** Badge of an image without a complete scan. Never green. It leads to the reason. */
export function CoverageBadge({ children, href }: { children: string; href: string }) {
  return (
    <a class="badge coverage" href={href}>
      <Icon name="unscanned" />
      {children}
    </a>
  )
}

type CoverageOf = { state: string; summary: string } | undefined

type ResultProps = {
  /** Counts by severity. Undefined if the packages of the image were not compared. */
  counts: Counts | undefined
  /** Undefined for a user without permission to list vulnerability reports. */
  coverage: CoverageOf
  /** Address of the findings, and of the reason if the image was not scanned. */
  href: string
}

/** Counts of an image, or the badge of an image that was not scanned. A badge also follows the counts of an incomplete scan. */
export function ScanResult({ counts, coverage, href }: ResultProps) {
  if (coverage === undefined) return <span class="dim">–</span>
  const isComplete = coverage.state === 'COMPARED'
  return (
    <span class="scan" title={coverage.summary}>
      {counts && <FindingsStrip counts={counts} href={href} />}
      {!isComplete && <CoverageBadge href={href}>{counts ? words.scannedInPart : words.notScanned}</CoverageBadge>}
    </span>
  )
}

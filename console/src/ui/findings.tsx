// Counts of findings by severity, and the badge of an image that was not scanned completely.
import { words } from '../words.ts'
import { Icon } from './icon.tsx'

export type Counts = { critical: number; high: number; medium: number; low: number; unknown: number }
const severities = ['critical', 'high', 'medium', 'low'] as const

type StripProps = { counts: Counts; href?: string }

/** Four cells at fixed places, so that a column can be compared. Zero is gray. Findings of unknown severity follow. */
export function FindingsStrip({ counts, href }: StripProps) {
  const cells = (
    <>
      <span class="unseen">{words.findingCounts(counts)}</span>
      {severities.map((one) => (
        <i key={one} class={counts[one] > 0 ? one : ''} aria-hidden="true">
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

// Text with the searched part marked.
import { matchIn } from './results.ts'

export function Marked({ label, q }: { label: string; q: string }) {
  const match = matchIn(label, q)
  if (!match) return <>{label}</>
  return (
    <>
      {label.slice(0, match.from)}
      <mark>{label.slice(match.from, match.to)}</mark>
      {label.slice(match.to)}
    </>
  )
}

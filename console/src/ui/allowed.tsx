// Content that needs a permission.
import type { ComponentChildren } from 'preact'
import { isKnown } from '../app/session.ts'
import { Empty, Waiting } from './states.tsx'

type Props = { isAllowed: boolean; otherwise: string; children: ComponentChildren }

/** Shows it, or says that the person may not see it; neither before that is known. */
export function Allowed({ isAllowed, otherwise, children }: Props) {
  if (!isKnown()) return <Waiting />
  return isAllowed ? children : <Empty>{otherwise}</Empty>
}

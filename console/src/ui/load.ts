// Hook that loads the data of a screen.
import { useEffect, useRef, useState } from 'preact/hooks'

export type Loaded<T> = {
  /** Data of the last read. It stays while the data is read again. */
  data: T | undefined
  error: unknown
  isBusy: boolean
  reload: () => void
}

/** Reads the data once for each `key`, and again on `reload`. Ignores an answer if the key has changed since its request. */
export function useLoad<T>(key: string, read: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [round, setRound] = useState(0)
  const [got, setGot] = useState<{ key: string; data?: T; error?: unknown; isBusy: boolean }>({ key, isBusy: true })
  const latest = useRef(read)
  latest.current = read
  useEffect(() => {
    const leave = new AbortController()
    setGot((old) => ({ ...(old.key === key && { data: old.data }), key, isBusy: true }))
    latest.current(leave.signal).then(
      (data) => !leave.signal.aborted && setGot({ key, data, isBusy: false }),
      (error: unknown) => !leave.signal.aborted && setGot({ key, error, isBusy: false }),
    )
    return () => leave.abort()
  }, [key, round])
  const isOld = got.key !== key
  return {
    data: isOld ? undefined : got.data,
    error: isOld ? undefined : got.error,
    isBusy: isOld || got.isBusy,
    reload: () => setRound((one) => one + 1),
  }
}

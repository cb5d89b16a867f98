import { Trans, useLingui } from '@lingui/react/macro'
import { Skeleton, Switch } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { Problem } from '../../../../components/problem.tsx'
import { formatBytes } from '../../../../i18n/format.ts'
import { readLogEnd } from './log-end.ts'
import css from './preview.module.css'

const POLL_MS = 2000

/** The end of a log, with what is added to it meanwhile. */
export function LogPreview({ serverId, path }: { serverId: string; path: string }) {
  const { t, i18n } = useLingui()
  const view = useRef<HTMLPreElement>(null)
  const [isFollowing, setFollowing] = useState(true)
  const { data, error, refetch } = useQuery({
    queryKey: ['log-end', serverId, path],
    queryFn: ({ signal }) => readLogEnd(serverId, path, signal),
    refetchInterval: POLL_MS,
    gcTime: 0,
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: with each new text
  useEffect(() => {
    if (isFollowing && view.current) view.current.scrollTop = view.current.scrollHeight
  }, [data?.text, isFollowing])
  if (error && !data) return <Problem error={error} onRetry={() => void refetch()} />
  if (!data) return <Skeleton height={320} radius="md" />
  return (
    <>
      <div className="row spread">
        <p className="small faint">
          {data.isWhole ? (
            formatBytes(data.sizeBytes, i18n.locale)
          ) : (
            <Trans>The end of {formatBytes(data.sizeBytes, i18n.locale)}. Download it to see all.</Trans>
          )}
        </p>
        <Switch
          label={t`Follow`}
          checked={isFollowing}
          onChange={(event) => setFollowing(event.currentTarget.checked)}
        />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keyboard */}
      <pre ref={view} className={`card ${css.log}`} tabIndex={0}>
        {data.text}
      </pre>
    </>
  )
}

import {
  type AdminOptions,
  type Backoff,
  type ConsumeOptions,
  type Dedupe,
  type DelayedTasksOptions,
  type DoctorOptions,
  type DueOptions,
  defineTask,
  type FailuresOptions,
  type HistoryOptions,
  type IdQueueOptions,
  type ListOptions,
  type MetersOptions,
  type MetricsServer,
  type NotifierOptions,
  type PauseQueueOptions,
  type PieceworkOptions,
  type ProducerOptions,
  type ProgressOptions,
  type PutOptions,
  type RedriveOptions,
  type RequestOptions,
  type ResultsOptions,
  type RetryQueueOptions,
  type RunningOptions,
  type SchedulerOptions,
  type StartOptions,
  type SubmitOptions,
  type SubRequestsOptions,
  type SuccessesOptions,
  type TakeDueOptions,
  type TakeOptions,
  type TaskOptions,
  type TaskWorkerOptions,
  type TimedOptions,
  type UpdateOptions,
  type WaitOptions,
  type WorkerOptions,
} from 'piecework';

/*
 * With exactOptionalPropertyTypes an option that may be left out may be `undefined` as well, as it may when it
 * runs: what somebody else may have left out is passed on as it is. Named are those that may not.
 */
type Strict<Options> = Options extends unknown
  ? {
      [Name in keyof Options]-?: object extends Pick<Options, Name>
        ? { readonly [_ in Name]: undefined } extends Pick<Options, Name>
          ? never
          : Name
        : never;
    }[keyof Options]
  : never;

type All =
  | Strict<AdminOptions | Backoff | ConsumeOptions | Dedupe | DelayedTasksOptions | DoctorOptions>
  | Strict<DueOptions | FailuresOptions | IdQueueOptions | ListOptions | MetersOptions>
  | Strict<HistoryOptions>
  | Strict<MetricsServer | NotifierOptions | PauseQueueOptions | PieceworkOptions | ProducerOptions>
  | Strict<ProgressOptions | PutOptions | RedriveOptions | RequestOptions | ResultsOptions>
  | Strict<
      RetryQueueOptions | RunningOptions | SchedulerOptions | StartOptions | SubRequestsOptions
    >
  | Strict<SubmitOptions<unknown, unknown> | SuccessesOptions | TakeDueOptions | TakeOptions>
  | Strict<TaskOptions | TaskWorkerOptions | TimedOptions | UpdateOptions | WaitOptions>
  | Strict<WorkerOptions>;

export const strict: never = undefined as unknown as All;
defineTask('any', { payload: undefined });

(* Proposition C.1: the regularized empirical kHGR is at most HSIC / (eta_Z eta_S), squared.

   Formalized twice.
   1. With functions: kHGR is the largest covariance of f(Z) and g(S) relative to
      the square root of (var f + eta_Z ||f||^2)(var g + eta_S ||g||^2). This
      form holds for any sets Z and S.
   2. With operators, as printed: features in any finite dimension, A and C the
      inverse square roots of the regularized covariances, and the operator norm
      as a bound for all vectors x, y. The covariance operators have finite
      rank, so finite dimension loses nothing on a sample.
   Not used: that the kernels are characteristic. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite Sample.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* begin definitions for Proposition C.1 *)
Definition covariance (R : realFieldType) n (u v : 'I_n -> R) : R :=
  n%:R^-1 * \sum_i recenter u i * recenter v i.

Definition at_sample (R : realFieldType) (X : Type) n (x : 'I_n -> X) (f : X -> R) (i : 'I_n) : R :=
  f (x i).
(* end definitions for Proposition C.1 *)

Lemma recenter_recenter (R : realFieldType) n (u : 'I_n -> R) : recenter (recenter u) =1 recenter u.
Proof.
move=> i; suff e : \sum_j recenter u j = 0 by rewrite {1}/recenter e mulr0 subr0.
rewrite /recenter sumrB sumr_const card_ord -[X in _ - X]mulr_natr.
case: n u i => [|n] u i; first by case: i.
by rewrite mulrAC mulVf ?pnatr_eq0 // mul1r subrr.
Qed.

Lemma covariance_le (R : realFieldType) (X Y : Type) (k : X -> X -> R) (l : Y -> Y -> R)
    n (z : 'I_n -> X) (s : 'I_n -> Y) (f : X -> R) (g : Y -> R) (bf bg : R) :
  kernel_on k -> kernel_on l -> 0 <= bf -> ball_on k bf f -> ball_on l bg g ->
  covariance (at_sample z f) (at_sample s g) ^+ 2
    <= bf * bg * hsic_n (gram k z) (gram l s).
Proof.
move=> kk kl bf0 fb gb.
set u := at_sample z f; set v := at_sample s g.
set Kt := centered (gram k z); set Lt := centered (gram l s).
have kK : kernel (fun i j => Kt i j) by apply: centered_kernel; exact: gram_kernel.
have kL : kernel (fun i j => Lt i j) by apply: centered_kernel; exact: gram_kernel.
have [r [d [w [d0 KE]]]] := kernel_squares kK.
have step1 : (\sum_i recenter u i * recenter v i) ^+ 2 <= bf * quad (fun i j => Kt i j) (recenter v).
  rewrite sum_recenter; have -> : \sum_i u i * recenter (recenter v) i = \sum_i recenter v i * f (z i).
    by apply: eq_bigr => i _; rewrite recenter_recenter mulrC.
  apply: le_trans (fb n z _) _; rewrite le_eqVlt; apply/orP; left; apply/eqP; congr (_ * _).
  rewrite /quad form_centered (eq_form _ (recenter_recenter v) (recenter_recenter v)).
  by apply: eq_kernel_form => i a; rewrite mxE.
have step2 : quad (fun i j => Kt i j) (recenter v) <= bg * \tr (Kt *m Lt).
  rewrite (trace_squares (proj1 kL) KE) /quad (eq_kernel_form _ _ KE) form_squares mulr_sumr.
  apply: ler_sum => a _; rewrite [X in _ <= X]mulrCA; apply: ler_wpmul2l => //.
  rewrite -expr2; have -> : \sum_i recenter v i * w a i = \sum_i recenter (w a) i * g (s i).
    by rewrite sum_recenter; apply: eq_bigr => i _; rewrite mulrC.
  apply: le_trans (gb n s _) _; rewrite le_eqVlt; apply/orP; left; apply/eqP; congr (_ * _).
  by rewrite form_centered; apply: eq_kernel_form => i j; rewrite mxE.
rewrite /covariance exprMn exprVn /hsic_n -/Kt -/Lt [X in _ <= X]mulrCA.
apply: ler_wpmul2l; first by rewrite invr_ge0 sqr_ge0.
by apply: le_trans step1 _; rewrite -mulrA; apply: ler_wpmul2l.
Qed.

(* begin Proposition C.1, functions *)
Theorem regularized_correlation (R : realFieldType) (X Y : Type)
    (k : X -> X -> R) (l : Y -> Y -> R) n (z : 'I_n -> X) (s : 'I_n -> Y)
    (f : X -> R) (g : Y -> R) (bf bg eta_z eta_s : R)
    (u := at_sample z f) (v := at_sample s g) :
  kernel_on k -> kernel_on l -> 0 <= bf -> 0 <= bg -> ball_on k bf f -> ball_on l bg g ->
  0 < eta_z -> 0 < eta_s ->
  covariance u v ^+ 2 <=
    hsic_n (gram k z) (gram l s) / (eta_z * eta_s)
    * ((covariance u u + eta_z * bf) * (covariance v v + eta_s * bg)).
(* end Proposition C.1, functions *)
Proof.
move=> kk kl bf0 bg0 fb gb ez es.
have var_ge0 (w : 'I_n -> R) : 0 <= covariance w w.
  rewrite mulr_ge0 ?invr_ge0 ?ler0n // sumr_ge0 // => i _; by rewrite -expr2 sqr_ge0.
apply: le_trans (covariance_le z s kk kl bf0 fb gb) _.
set h := hsic_n _ _; have h0 : 0 <= h by apply: hsic_n_ge0; exact: gram_kernel.
have -> : bf * bg * h = h / (eta_z * eta_s) * (eta_z * bf * (eta_s * bg)).
  by field; rewrite !gt_eqF.
apply: ler_wpmul2l; first by rewrite divr_ge0 // mulr_ge0 ?ltW.
by apply: ler_pmul; rewrite ?ler_addr ?var_ge0 //; apply: mulr_ge0 => //; exact: ltW.
Qed.

Definition dot (R : realFieldType) n (u v : 'rV[R]_n) : R := (u *m v^T) 0 0.

Lemma dotE (R : realFieldType) n (u v : 'rV[R]_n) : dot u v = \sum_i u 0 i * v 0 i.
Proof. by rewrite /dot mxE; apply: eq_bigr => i _; rewrite mxE. Qed.

Lemma frobenius (R : realFieldType) d e (a : 'rV[R]_d) (M : 'M[R]_(d, e)) (c : 'rV[R]_e) :
  (a *m M *m c^T) 0 0 ^+ 2 <= dot a a * dot c c * \tr (M *m M^T).
Proof.
have -> : (a *m M *m c^T) 0 0 = \sum_(x : 'I_d * 'I_e) (a 0 x.1 * c 0 x.2) * M x.1 x.2.
  rewrite -(pair_big xpredT xpredT (fun i j => a 0 i * c 0 j * M i j)) /= exchange_big mxE.
  apply: eq_bigr => j _ /=; rewrite !mxE mulr_suml; apply: eq_bigr => i _.
  by rewrite mulrAC.
apply: le_trans (dot_sq _ _) _; rewrite le_eqVlt; apply/orP; left; apply/eqP; congr (_ * _).
  rewrite -(pair_big xpredT xpredT (fun i j => (a 0 i * c 0 j) ^+ 2)) /= !dotE big_distrlr /=.
  by apply: eq_bigr => i _; apply: eq_bigr => j _; rewrite exprMn !expr2.
rewrite -(pair_big xpredT xpredT (fun i j => M i j ^+ 2)) /= /mxtrace.
by apply: eq_bigr => i _; rewrite mxE; apply: eq_bigr => j _; rewrite mxE expr2.
Qed.

(* begin Proposition C.1, operators *)
(* The empirical covariance of the features in the rows of F and G. *)
Definition covariance_matrix (R : realFieldType) n d e (F : 'M[R]_(n, d)) (G : 'M[R]_(n, e)) : 'M[R]_(d, e) :=
  n%:R^-1 *: ((centering R n *m F)^T *m (centering R n *m G)).

Theorem regularized_operator (R : realFieldType) n d e
    (F : 'M[R]_(n, d)) (G : 'M[R]_(n, e)) (A : 'M[R]_d) (C : 'M[R]_e) (eta_z eta_s : R) :
  0 < eta_z -> 0 < eta_s -> A^T = A -> C^T = C ->
  A *m (covariance_matrix F F + eta_z%:M) *m A = 1%:M ->
  C *m (covariance_matrix G G + eta_s%:M) *m C = 1%:M ->
  forall (x : 'rV[R]_d) (y : 'rV[R]_e),
    (x *m (A *m covariance_matrix F G *m C) *m y^T) 0 0 ^+ 2
    <= hsic_n (F *m F^T) (G *m G^T) / (eta_z * eta_s) * (dot x x * dot y y).
(* end Proposition C.1, operators *)
Proof.
move=> ez es sA sC AI CI x y.
have shrink m (Q : 'M[R]_(n, m)) (B : 'M[R]_m) eta (w : 'rV[R]_m) : 0 < eta -> B^T = B ->
    B *m (covariance_matrix Q Q + eta%:M) *m B = 1%:M -> eta * dot (w *m B) (w *m B) <= dot w w.
  move=> e0 sB BI; set t := w *m B; set q := centering R n *m Q.
  have -> : dot w w = n%:R^-1 * dot (t *m q^T) (t *m q^T) + eta * dot t t.
    have e1 : w *m w^T = t *m (covariance_matrix Q Q + eta%:M) *m t^T.
      transitivity (w *m (B *m (covariance_matrix Q Q + eta%:M) *m B) *m w^T); first by rewrite BI mulmx1.
      by rewrite /t trmx_mul sB !mulmxA.
    rewrite /dot e1 mulmxDr mulmxDl mxE; congr (_ + _); last by rewrite mul_mx_scalar -scalemxAl mxE.
    by rewrite /covariance_matrix -/q -scalemxAr -scalemxAl mxE [(t *m q^T)^T]trmx_mul trmxK !mulmxA.
  rewrite ler_addr mulr_ge0 ?invr_ge0 ?ler0n // dotE sumr_ge0 // => i _.
  by rewrite -expr2 sqr_ge0.
have -> : x *m (A *m covariance_matrix F G *m C) *m y^T
          = (x *m A) *m covariance_matrix F G *m (y *m C)^T by rewrite trmx_mul sC !mulmxA.
apply: le_trans (frobenius _ _ _) _.
have hsicE : \tr (covariance_matrix F G *m (covariance_matrix F G)^T) = hsic_n (F *m F^T) (G *m G^T).
  rewrite /covariance_matrix linearZ /= -scalemxAl -scalemxAr scalerA linearZ /= /hsic_n.
  congr (_ * _); first by rewrite expr2 invfM.
  have cF m (Q : 'M[R]_(n, m)) : centered (Q *m Q^T) = (centering R n *m Q) *m (centering R n *m Q)^T.
    by rewrite /centered trmx_mul centering_sym !mulmxA.
  rewrite !cF; set P := centering R n *m F; set Q := centering R n *m G.
  by rewrite [(P^T *m Q)^T]trmx_mul trmxK -[P *m P^T *m _]mulmxA [RHS]mxtrace_mulC !mulmxA.
rewrite hsicE; set h := hsic_n _ _.
have h0 : 0 <= h.
  rewrite /h -hsicE /mxtrace sumr_ge0 // => i _; rewrite mxE sumr_ge0 // => j _.
  by rewrite [_^T _ _]mxE -expr2 sqr_ge0.
have a1 := shrink _ _ _ _ x ez sA AI; have c1 := shrink _ _ _ _ y es sC CI.
set a := dot (x *m A) _ in a1 *; set c := dot (y *m C) _ in c1 *.
have a0 : 0 <= a by rewrite /a dotE sumr_ge0 // => i _; rewrite -expr2 sqr_ge0.
have c0 : 0 <= c by rewrite /c dotE sumr_ge0 // => i _; rewrite -expr2 sqr_ge0.
have -> : a * c * h = h / (eta_z * eta_s) * (eta_z * a * (eta_s * c)) by field; rewrite !gt_eqF.
apply: ler_wpmul2l; first by rewrite divr_ge0 // mulr_ge0 ?ltW.
by apply: ler_pmul => //; apply: mulr_ge0 => //; exact: ltW.
Qed.

(* The hypotheses on A hold, for example, for constant features and ridge one. *)
Example hypotheses_hold (R : realFieldType) n d :
  (1%:M : 'M[R]_d) *m (covariance_matrix (0 : 'M[R]_(n, d)) 0 + 1%:M) *m 1%:M = 1%:M.
Proof. by rewrite /covariance_matrix mulmx0 trmx0 mul0mx scaler0 add0r !mulmx1. Qed.

(* Theorem 4.7: the empirical HSIC bounds the empirical parity gap of every RKHS head.

   Formalized: the chain of both inequalities for every sample, the existence of
   the positive eigenvalues and orthonormal eigenvectors of HLH/n, and that these
   add up to HLH/n.
   As general as the paper: Z and S may be any sets, n any positive number.
   Stronger: only the m eigenvectors that are used are assumed, in any order;
   [low] is any positive lower bound of their eigenvalues, for example lambda_m.
   The inequalities hold over every ordered field; the existence of eigenvectors
   needs a real closed field.
   Hypotheses: k and l are kernels (k_Z and k_S); f belongs to the RKHS of k_Z
   and has squared norm at most b. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite Sample Spectral_theorem.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* begin definitions for Theorem 4.7 *)
(* The vector delta_f of the centered predictions. *)
Definition centered_prediction (R : realFieldType) (X : Type) n (z : 'I_n -> X) (f : X -> R)
    (i : 'I_n) : R :=
  f (z i) - n%:R^-1 * \sum_j f (z j).

Definition eigenvectors (R : realFieldType) n (M : 'M[R]_n) m
    (lam : 'I_m -> R) (e : 'I_m -> 'I_n -> R) : Prop :=
  (forall i j, \sum_a e i a * e j a = (i == j)%:R)
  /\ forall j i, \sum_a M i a * e j a = lam j * e j i.

(* The orthogonal projection on the span of e_1, ..., e_m. *)
Definition project (R : realFieldType) n m (e : 'I_m -> 'I_n -> R) (u : 'I_n -> R)
    (i : 'I_n) : R :=
  \sum_j (\sum_a e j a * u a) * e j i.
(* end definitions for Theorem 4.7 *)

Lemma jensen (R : realFieldType) n (g : 'I_n -> R) : (0 < n)%N ->
  (n%:R^-1 * \sum_i `|g i|) ^+ 2 <= n%:R^-1 * \sum_i g i ^+ 2.
Proof.
move=> n0; have n1 : (0 : R) < n%:R by rewrite ltr0n.
have := dot_sq (fun _ : 'I_n => 1 : R) (fun i => `|g i|).
under eq_bigr do rewrite mul1r.
under [X in _ <= X * _ -> _]eq_bigr do rewrite expr1n.
under [X in _ <= _ * X -> _]eq_bigr do rewrite real_normK ?num_real //.
rewrite sumr_const card_ord => h.
by rewrite exprMn expr2 -mulrA ler_pmul2l ?invr_gt0 // ler_pdivr_mull.
Qed.

(* begin Theorem 4.7 *)
Theorem finite_sample (R : realFieldType) (X Y : Type) (k : X -> X -> R) (l : Y -> Y -> R)
    n (z : 'I_n -> X) (s : 'I_n -> Y) (f : X -> R) (b : R)
    m (lam : 'I_m -> R) (e : 'I_m -> 'I_n -> R) (low : R) :
  (0 < n)%N -> kernel_on k -> kernel_on l -> ball_on k b f ->
  eigenvectors (n%:R^-1 *: centered (gram l s)) lam e -> 0 < low -> (forall j, low <= lam j) ->
  let gap := project e (centered_prediction z f) in
  (n%:R^-1 * \sum_i `|gap i|) ^+ 2 <= n%:R^-1 * (\sum_i gap i ^+ 2)
  /\ n%:R^-1 * (\sum_i gap i ^+ 2) <= b / low * hsic_n (gram k z) (gram l s).
(* end Theorem 4.7 *)
Proof.
move=> n0 kk kl fb [on eigen] low0 low_lam gap; split; first exact: jensen.
have n1 : (0 : R) < n%:R by rewrite ltr0n.
have nn : n%:R != 0 :> R by rewrite gt_eqF.
set Kt := centered (gram k z); set Lt := centered (gram l s).
have kK : kernel (fun i j => Kt i j) by apply: centered_kernel; exact: gram_kernel.
have kL : kernel (fun i j => Lt i j) by apply: centered_kernel; exact: gram_kernel.
pose c u j := \sum_a e j a * u a.
have form_e u j : form (fun i j => Lt i j) u (e j) = n%:R * lam j * c u j.
  rewrite /c mulr_sumr; apply: eq_bigr => i _.
  have := eigen j i; under eq_bigr do rewrite mxE -mulrA.
  rewrite -mulr_sumr => /(congr1 ( *%R n%:R)); rewrite mulVKf // => h.
  transitivity (u i * \sum_a Lt i a * e j a).
    by rewrite mulr_sumr; apply: eq_bigr => a _; rewrite -mulrA [e j a * _]mulrC.
  by rewrite h; ring.
have bessel u : \sum_j n%:R * lam j * c u j ^+ 2 <= quad (fun i j => Lt i j) u.
  rewrite -subr_ge0 -(@quad_residual _ _ _ _ _ e (fun j => n%:R * lam j)).
  - exact: (proj2 kL).
  - exact: (proj1 kL).
  - exact: form_e.
  - by move=> i j; rewrite form_e /c; under eq_bigr do rewrite mulrC; rewrite on.
have gap_norm : \sum_i gap i ^+ 2 = \sum_j c (centered_prediction z f) j ^+ 2.
  rewrite -quad_equal (@quad_combination _ _ _ _ _ (fun=> 1)).
    by under eq_bigr do rewrite mul1r.
  by move=> i j; rewrite form_equal on mul1r.
have head j : c (centered_prediction z f) j ^+ 2 <= b * quad (fun i j => Kt i j) (e j).
  have -> : c (centered_prediction z f) j = \sum_i recenter (e j) i * f (z i).
    by rewrite sum_recenter.
  rewrite /quad form_centered; apply: le_trans (fb n z _) _.
  rewrite le_eqVlt; apply/orP; left; apply/eqP; congr (_ * _).
  by apply: eq_kernel_form => i a; rewrite mxE.
have [r [d [v [d0 KE]]]] := kernel_squares kK.
have energy : low * (\sum_j quad (fun i j => Kt i j) (e j)) <= n%:R * hsic_n (gram k z) (gram l s).
  have -> : n%:R * hsic_n (gram k z) (gram l s)
            = \sum_a d a * (n%:R^-1 * quad (fun i j => Lt i j) (v a)).
    rewrite /hsic_n (trace_squares (proj1 kL) KE) mulrA expr2 invfM mulrA divff // mul1r mulr_sumr.
    by apply: eq_bigr => a _; rewrite mulrCA.
  have -> : low * (\sum_j quad (fun i j => Kt i j) (e j))
            = \sum_a d a * \sum_j low * c (v a) j ^+ 2.
    rewrite mulr_sumr; under eq_bigr => j _ do rewrite /quad (eq_kernel_form _ _ KE) form_squares mulr_sumr.
    rewrite exchange_big; apply: eq_bigr => a _ /=; rewrite mulr_sumr; apply: eq_bigr => j _.
    by rewrite mulrCA -expr2.
  apply: ler_sum => a _; apply: ler_wpmul2l => //.
  rewrite ler_pdivl_mull //; apply: le_trans (bessel _); rewrite mulr_sumr.
  by apply: ler_sum => j _; rewrite mulrA ler_wpmul2r ?sqr_ge0 // ler_wpmul2l // ltW.
rewrite gap_norm ler_pdivr_mull //.
apply: le_trans (ler_sum _ (fun j _ => head j)) _; rewrite -mulr_sumr.
have [b0|b0] := leP 0 b; last first.
  apply: (@le_trans _ _ 0).
    by rewrite mulr_le0_ge0 ?(ltW b0) // sumr_ge0 // => j _; exact: (proj2 kK).
  have f0 : quad (fun i j => Kt i j) =1 (fun=> 0).
    move=> u; apply/eqP; rewrite eq_le (proj2 kK) andbT -(ler_nmul2l b0) mulr0.
    have -> : quad (fun i j => Kt i j) u = quad (fun i j => k (z i) (z j)) (recenter u).
      by rewrite /quad form_centered; apply: eq_kernel_form => i a; rewrite mxE.
    by apply: le_trans (fb n z (recenter u)); exact: sqr_ge0.
  have -> : hsic_n (gram k z) (gram l s) = 0.
    have trC : \tr (Kt *m Lt) = \tr (Lt *m Kt) by exact: mxtrace_mulC.
    have [r' [d' [v' [_ LE]]]] := kernel_squares kL.
    rewrite /hsic_n -/Kt -/Lt trC (trace_squares (proj1 kK) LE) big1 ?mulr0 // => a _.
    by rewrite f0 mulr0.
  by rewrite !mulr0.
rewrite mulrCA -mulrA; apply: ler_wpmul2l => //.
by rewrite ler_pdivl_mull.
Qed.

(* begin Theorem 4.7, eigenvectors *)
Theorem eigenvectors_exist (R : rcfType) (Y : Type) (l : Y -> Y -> R) n (s : 'I_n -> Y) :
  kernel_on l ->
  exists r (lam : 'I_r -> R) (e : 'I_r -> 'I_n -> R),
    [/\ eigenvectors (n%:R^-1 *: centered (gram l s)) lam e,
        forall j, 0 < lam j,
        forall i j : 'I_r, (i <= j)%N -> lam j <= lam i
      & forall a b, (n%:R^-1 *: centered (gram l s)) a b = \sum_j lam j * (e j a * e j b)].
(* end Theorem 4.7, eigenvectors *)
Proof.
move=> kl; set M := n%:R^-1 *: centered (gram l s).
have kM : kernel (fun i j => M i j).
  have [sL pL] := centered_kernel (gram_kernel s kl).
  split=> [i j|u]; first by rewrite [LHS]mxE [RHS]mxE sL.
  have := pL u; rewrite /quad => L0.
  have -> : form (fun i j => M i j) u u = n%:R^-1 * form (fun i j => centered (gram l s) i j) u u.
    rewrite /form mulr_sumr; apply: eq_bigr => i _; rewrite mulr_sumr; apply: eq_bigr => j _.
    by rewrite mxE mulrCA.
  by rewrite mulr_ge0 // invr_ge0 ler0n.
have [r [lam [e [lam0 down on ME]]]] := spectral_kernel kM.
exists r, lam, e; split=> //; split=> // j i.
under eq_bigr => a _ do rewrite ME mulr_suml.
rewrite exchange_big (bigD1 j) //= [X in _ + X]big1 ?addr0 => [|h hj].
  transitivity (\sum_a lam j * e j i * (e j a * e j a)); first by apply: eq_bigr => a _; ring.
  by rewrite -mulr_sumr on eqxx mulr1.
transitivity (\sum_a lam h * e h i * (e h a * e j a)); first by apply: eq_bigr => a _; ring.
by rewrite -mulr_sumr on (negbTE hj) mulr0.
Qed.

(* begin Theorem 4.7, as printed *)
(* The first m eigenvectors of a complete decreasing system, and lambda_m itself. *)
Theorem finite_sample_top (R : realFieldType) (X Y : Type) (k : X -> X -> R) (l : Y -> Y -> R)
    n (z : 'I_n -> X) (s : 'I_n -> Y) (f : X -> R) (b : R)
    r (lam : 'I_r -> R) (e : 'I_r -> 'I_n -> R) (m : 'I_r) :
  (0 < n)%N -> kernel_on k -> kernel_on l -> ball_on k b f ->
  eigenvectors (n%:R^-1 *: centered (gram l s)) lam e ->
  (forall i j : 'I_r, (i <= j)%N -> lam j <= lam i) -> 0 < lam m ->
  let gap := project (fun j : 'I_m.+1 => e (widen_ord (ltn_ord m) j)) (centered_prediction z f) in
  (n%:R^-1 * \sum_i `|gap i|) ^+ 2 <= n%:R^-1 * (\sum_i gap i ^+ 2)
  /\ n%:R^-1 * (\sum_i gap i ^+ 2) <= b / lam m * hsic_n (gram k z) (gram l s).
(* end Theorem 4.7, as printed *)
Proof.
move=> n0 kk kl fb [on eigen] down lam0.
apply: (@finite_sample R X Y k l n z s f b m.+1 (fun j => lam (widen_ord (ltn_ord m) j))) => //.
  split=> [i j|j i]; last exact: eigen.
  by rewrite on.
by move=> j; apply: down; rewrite /= -ltnS ltn_ord.
Qed.

(* The hypotheses hold, for example, on two points with the kernel 1[x = y]. *)
Example hypotheses_hold (R : realFieldType) :
  kernel_on (@equal R bool_finType) /\ ball_on (@equal R bool_finType) 1 (fun x => equal x true).
Proof.
split; first by apply: finite_kernel_on; exact: equal_kernel.
apply: finite_ball_on; have := ball_point true (equal_kernel R bool_finType).
by rewrite (_ : equal true true = 1 :> R) // /equal eqxx.
Qed.
